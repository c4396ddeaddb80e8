"""What every error must look like."""

import re


def check_one_sentence(result, code):
    """An error is its exit code and exactly one sentence on standard error."""
    assert result.exit_code == code, (result.exit_code, result.stdout, result.stderr)
    text = result.stderr.strip()
    assert text.startswith("Error: ")
    assert text.endswith(".")
    assert "\n" not in text
    assert "Traceback" not in text
    assert not re.search(r"[a-z)]\. [A-Z]", text), text
