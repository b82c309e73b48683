"""Being asked before an object is stored: a validating admission webhook, for rules that somebody else brings.

To read: `review` is what the API asks and is answered, `server` listens, `registration` tells the API whom to ask about what. The
rules themselves are a function from a `Question` to a `Verdict`; no kind is known here.
"""

from ingot.kube.admission.registration import Endpoint, Registration, Service, Subject, Wish
from ingot.kube.admission.review import Judge, Problem, Question, Verdict
from ingot.kube.admission.server import PATH, AdmissionServer

__all__ = [
    "PATH",
    "AdmissionServer",
    "Endpoint",
    "Judge",
    "Problem",
    "Question",
    "Registration",
    "Service",
    "Subject",
    "Verdict",
    "Wish",
]
