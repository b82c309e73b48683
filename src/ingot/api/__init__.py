"""The nouns: one module per kind, what all kinds share (`meta`), the CRDs made from them, and pure rules over them.

Nothing here does I/O and nothing here imports another room.

    baremetalhost, hardwaredata, core   the kinds; core holds Kubernetes' own
    meta                                metadata, references, conditions, Resource
    schema, definition, crd             descriptions of fields and kinds, and the CRDs made from them
    wire                                from a struct to what is sent
    bmc                                 BMC addresses and what can be done through them
    installed, inspection               what is wanted of a host, read from spec, status and annotations
    admission                           what an API refuses although its schema allows it

What a user wrote and cannot be right is a `Malformed`; its message is for that user:

    ValueError
    └── Malformed               (meta)
        ├── InvalidName         (meta)           a reference to a name that no object can have
        ├── InvalidAddress      (bmc)            not the address of a BMC
        ├── UnreadableSecret    (core)           a value in a Secret is not text in base64
        └── UnknownState        (baremetalhost)  a status names a state that does not exist
"""
