"""Policies: who may do what with a graph.

In: bundles in YAML, and acts as data. Out: decisions with the rule that made them. Guarantee: rules
only allow; an actor without a matching rule is denied; what cannot be evaluated raises
`PolicyFailedError` and is never an answer; an act has one decision for every door that asks.

    acts             what an actor may be asked about: an action and where it happens
    requirements     what a rule requires of a proposal
    policy_bundle    a bundle file as rules; every problem of a file at once
    row_conditions   conditions on rows, compared with a schema
    cedar            rules as a Cedar policy set; the only module that imports cedarpy
    decisions        a compiled bundle, with a bounded table of its decisions
    policy_cases     files of expected decisions
    grants           who can do what, by asking for every actor
"""
