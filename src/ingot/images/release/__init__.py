"""The release payload: container images with the CoreOS live ISO of each architecture and our tool, verified wherever they go.

The way of a payload: `building` puts one together (`assembling` is what any image is put together with), `layout` is the folder
it lies in, `registry` the other place where it can be, `mirroring` takes it from place to place, `payload` opens a folder
for serving, `checking` reads it again and again in the background, `unpacking` makes files of it for those who need files.

Errors:

    ReleaseError                what is wrong, in a sentence
    ├── PayloadError            a folder does not hold what a payload has
    │   └── PayloadDamaged      bytes are not those that their hash says
    └── RegistryError           a registry did not do what was asked
        ├── RegistryRefused     it said no: a person has to act
        └── RegistryUnreachable it did not answer, also when asked again: later
"""

from ingot.images.release.errors import (
    PayloadDamaged,
    PayloadError,
    RegistryError,
    RegistryRefused,
    RegistryUnreachable,
    ReleaseError,
)
from ingot.images.release.payload import Payload, PayloadImage

__all__ = [
    "Payload",
    "PayloadDamaged",
    "PayloadError",
    "PayloadImage",
    "RegistryError",
    "RegistryRefused",
    "RegistryUnreachable",
    "ReleaseError",
]
