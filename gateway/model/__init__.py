"""Language models behind one port: the providers' libraries, and two models that need no key."""
