"""What an operator has configured for all commands and programs of a user, and what it decides.

In: the folder `$OMNIGRAPH_HOME` or `~/.omnigraph`, with the files `config.yaml` and `credentials`;
variables of the environment; the flags of one command or the arguments of one call. Out: one
address, an actor, output settings, a token. Guarantee: nothing in the working directory has a part
in it; every value knows the flag, variable or line that decided it; a token appears in no message,
document or `repr`.

    operator_home       the folder and its files
    operator_settings   `config.yaml`: servers, clusters, profiles, defaults, aliases
    settings_reader     reads that file, when there is one
    address_resolver    flags, environment and config to one address
    alias_calls         an alias and its arguments to a call of a stored query
    credentials         tokens by server, in a private file; which token a request carries
    keychain            tokens in the keyring of the system, which is optional
"""

from omnigraph.operator_config.address_resolver import (
    Address,
    AddressFlags,
    ClusterAddress,
    ServerAddress,
    StoreAddress,
    resolve,
)
from omnigraph.operator_config.operator_settings import OperatorConfig, read_config

__all__ = [
    "Address",
    "AddressFlags",
    "ClusterAddress",
    "OperatorConfig",
    "ServerAddress",
    "StoreAddress",
    "read_config",
    "resolve",
]
