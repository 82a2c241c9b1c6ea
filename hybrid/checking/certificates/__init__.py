"""Certificates: what shows that an answer is right, and their check by code that shares nothing with solvers.

`hybrid.checking.certificates.verify` reads a model's text and a certificate and takes one sweep over the
explicit transitions.  Of this package only `making` knows the solvers; `mending`, `solving` and
`poisson` serve it.
"""
