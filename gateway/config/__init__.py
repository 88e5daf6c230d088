"""Reading settings: TOML under the environment, strictly validated, into frozen values.

`load.load_settings` is the way in; nothing else in the gateway reads a setting from a file or the environment.
"""
