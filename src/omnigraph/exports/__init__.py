"""Types of a snapshot as files for other programs.

In: a view, the types that are wanted, and a runner of tasks. Out: a directory or `s3://` prefix
with folders by type, or one document of all types. Guarantee: what is written appears as a whole or
not at all, and no task holds more than the rows of one file in memory.

    file_export        exports by tasks: staging, files, the document that is made of them
    export_formats     rows of a type as the bytes of a file
    export_folder      the files of an export, for a load
    property_texts     values as the texts of CSV and XML
    xml_format         what documents of XML have in common
    graphml_format     GraphML
    gexf_format        GEXF
"""
