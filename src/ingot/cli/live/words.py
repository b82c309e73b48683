"""Errors of formats and files as the one line a person reads; exit code 1, as coreos-installer has it."""

from __future__ import annotations

import click

from ingot.formats import FormatError


class OnceCommand(click.Command):
    """A command that takes an option once, unless it says otherwise: which of two files was meant is not for us to guess."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for number, param in enumerate(order):
            if isinstance(param, click.Option) and not param.multiple and param in order[:number]:
                raise click.UsageError(f"the option {param.opts[-1]} may be given once", ctx)
        return super().parse_args(ctx, args)


class WordedGroup(click.Group):
    """A group of commands over images: what is wrong with a file is said in a sentence, never in a traceback."""

    command_class = OnceCommand
    group_class = type

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except FormatError as error:
            raise click.ClickException(str(error)) from error
        except UnicodeEncodeError as error:
            # Python carries bytes of the command line that are no text along, up to where they have to become text.
            raise click.ClickException(f"{error.object!r} is not UTF-8") from error
        except BrokenPipeError:
            raise  # click ends quietly when nobody reads
        except OSError as error:
            what = error.filename2 or error.filename
            raise click.ClickException(f"{what}: {error.strerror}" if what else str(error)) from error
