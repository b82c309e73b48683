"""What users write into fields that become a URL, a path, a word on a command line: one module a sort of value.

Pure rules, whatever kind the field belongs to. Admission asks them when an object is written, and a back end asks them once more
before it hands anything on, because admission may be off. A rule answers with a sentence that says what is wrong, or with None;
whoever asks knows which object and field it is. What is secret is never repeated.
"""
