"""The bytes of files that came with messages, kept as files in a directory."""

from gateway.media.files import FileMedia
from gateway.media.options import MediaOptions

__all__ = ["FileMedia", "MediaOptions"]
