"""The web interface: pages that use a graph by the routes that every other client uses.

In: the path of a page or of a file. Out: the bytes of the file, and the headers that a browser
needs to trust it. Guarantee: nothing that is served here depends on a graph, a token or a policy;
the pages load nothing from elsewhere, and run without inline scripts.

    web_assets      the files as they are sent: types, digests, compressed forms
    static/         pages and their parts: plain modules, as they are written
    vendor/         libraries, bundled by `web/build.mjs` of the repository, with their licences
"""
