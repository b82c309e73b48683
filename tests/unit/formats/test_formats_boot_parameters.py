"""Kernel parameters out of boot loaders' configurations."""

from __future__ import annotations

import pytest

from ingot.formats import FormatError
from ingot.formats.boot_parameters import grub_config, kernel_parameters, parameters


@pytest.mark.parametrize("word", ["linux", "linuxefi", "LINUX16"])
def test_the_first_kernel_line_of_grub_counts(word: str) -> None:
    entry = f'menuentry "x" {{\n  {word} /vmlinuz nofb a=1 b="two words" a=3 --\n  initrd /i\n}}\n'
    config = f"set default=0\n{entry}linux /other z=9\n"
    assert kernel_parameters(config) == {"nofb": "", "a": "3", "b": "two words"}


def test_isolinux_has_its_parameters_after_append() -> None:
    assert kernel_parameters("label x\n kernel /vmlinuz\n append initrd=/i ipa-api-url=https://a/\n") == {
        "initrd": "/i",
        "ipa-api-url": "https://a/",
    }


def test_what_we_write_is_read_back() -> None:
    values = {"ipa-api-url": "https://127.0.0.1:6385", "quiet": ""}
    assert kernel_parameters(grub_config(kernel="/vmlinuz", initrd="/initrd", values=values)) == values


@pytest.mark.parametrize("value", ["a b", "x;reboot", "$root", 'q"', "new\nline", "}"])
def test_a_value_that_grub_would_read_differently_is_refused(value: str) -> None:
    with pytest.raises(FormatError, match="ipa-api-url"):
        grub_config(kernel="/k", initrd="/i", values={"ipa-api-url": value})


def test_no_kernel_line_and_an_open_quote_are_errors_in_words() -> None:
    with pytest.raises(FormatError, match="no kernel line"):
        kernel_parameters("set timeout=0\n")
    with pytest.raises(FormatError, match="quote"):
        parameters('a="b')
