"""A look at an installation: what is there, what is wrong with it, and what to do about it.

It works beside a running gateway and without one. It calls nobody, and makes and changes nothing.
"""

from gateway.app.doctor.findings import Finding, Grade
from gateway.app.doctor.installation import read_configuration
from gateway.app.doctor.looking import look

__all__ = ["Finding", "Grade", "look", "read_configuration"]
