"""The version of this package, and its name in requests and events."""

from typing import Final

VERSION: Final = "0.1.0"
SDK_NAME: Final = f"trueup-sdk-python/{VERSION}"
