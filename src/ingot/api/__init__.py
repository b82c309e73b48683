"""The nouns: one module per kind, what all kinds share (`meta`), the CRDs made from them, and pure rules over them.

Nothing here does I/O and nothing here imports another room.

    baremetalhost and its companions    hosts, what they are made of, their firmware, images, switches
    hostclaim, hostdeploypolicy         who wants a host, and who may have it; hostselector says which
    ironic, ironicdatabase              the service behind the hosts, and its database
    machine                             Machine, MachineSet and the provider spec
    core                                Kubernetes' own kinds
    meta                                metadata, references, conditions, Resource
    schema, definition, crd             descriptions of fields and kinds, and the CRDs made from them
    wire                                from a struct to what is sent
    bmc                                 BMC addresses and what can be done through them
    installed, inspection               what is wanted of a host, read from spec, status and annotations
    strict                              reading what no schema was checked for
    admission                           what an API refuses although its schema allows it

What a user wrote and cannot be right is a `Malformed`; its message is for that user:

    ValueError
    └── Malformed               (meta)
        ├── InvalidName         (meta)           a reference to a name that no object can have
        ├── InvalidAddress      (bmc)            not the address of a BMC
        ├── UnreadableSecret    (core)           a value in a Secret is not text in base64
        ├── InvalidProviderSpec (machine)        a Machine does not say what can be made
        ├── TwoMeanings         (ironic)         one thing is written in two ways that do not agree
        └── UnknownState        (baremetalhost)  a status names a state that does not exist
"""
