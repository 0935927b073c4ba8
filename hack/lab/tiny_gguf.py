"""Writes a llama model of random weights, so that a real llama-server runs without a download.

What it says is noise; that it computes is what matters. Width and depth choose how long a token takes:
64x2 answers at once, 512x8 (about 110 MB) takes seconds over a prompt of some thousand tokens.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import gguf

FORMAT = 1
"""Raised when the bytes written for a shape change, so that a cached file of an older recipe is not used."""
TRAINED_CONTEXT = 65536
HEADS = 4


@dataclass(frozen=True, slots=True)
class Shape:
    """Size of a model: `width` is the embedding length, `layers` the number of blocks."""

    width: int
    layers: int

    @property
    def file_name(self) -> str:
        digest = hashlib.sha256(f"{FORMAT}/{self.width}/{self.layers}".encode()).hexdigest()[:8]
        return f"random-{self.width}x{self.layers}-{digest}.gguf"


TINY = Shape(width=64, layers=2)
SLOW = Shape(width=512, layers=8)


def cache_dir() -> Path:
    """Where models are kept: `VACANCY_LAB_CACHE`, else a folder in the user's cache; never the checkout."""
    named = os.environ.get("VACANCY_LAB_CACHE")
    base = (
        Path(named)
        if named
        else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vacancy-lab"
    )
    base.mkdir(parents=True, exist_ok=True)
    return base


def ensure_model(shape: Shape) -> Path:
    """Path of the model of that shape, written on first use. Two writers at once end with one whole file."""
    path = cache_dir() / shape.file_name
    if not path.exists():
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        os.close(handle)
        write_model(Path(temporary), shape)
        Path(temporary).replace(path)
    return path


def write_model(path: Path, shape: Shape) -> None:
    """Write the model file: llama architecture, 32 bit floats, byte-level vocabulary with a few words."""
    import gguf

    writer = gguf.GGUFWriter(str(path), "llama")
    _add_architecture(writer, shape)
    vocabulary = _add_vocabulary(writer)
    _add_weights(writer, shape, vocabulary)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_architecture(writer: gguf.GGUFWriter, shape: Shape) -> None:
    writer.add_name("random weights")
    writer.add_file_type(0)
    writer.add_context_length(TRAINED_CONTEXT)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(3 * shape.width)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(shape.width // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)


def _add_vocabulary(writer: gguf.GGUFWriter) -> int:
    from gguf import TokenType

    words = [
        "\u2581lend",
        "\u2581the",
        "\u2581idle",
        "\u2581box",
        "\u2581",
        *map(chr, range(ord("a"), ord("z") + 1)),
    ]
    tokens: list[tuple[bytes, TokenType, float]] = [
        (b"<unk>", TokenType.UNKNOWN, 0.0),
        (b"<s>", TokenType.CONTROL, 0.0),
        (b"</s>", TokenType.CONTROL, 0.0),
    ]
    tokens += [(f"<0x{value:02X}>".encode(), TokenType.BYTE, 0.0) for value in range(256)]
    tokens += [(word.encode(), TokenType.NORMAL, -float(rank)) for rank, word in enumerate(words)]
    writer.add_tokenizer_model("llama")
    writer.add_vocab_size(len(tokens))
    writer.add_token_list([token for token, _, _ in tokens])
    writer.add_token_types([kind for _, kind, _ in tokens])
    writer.add_token_scores([score for _, _, score in tokens])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(True)
    writer.add_chat_template("{% for m in messages %}<{{ m.role }}> {{ m.content }}\n{% endfor %}<assistant>")
    return len(tokens)


def _add_weights(writer: gguf.GGUFWriter, shape: Shape, vocabulary: int) -> None:
    import numpy as np

    random = np.random.default_rng(20)
    inner = 3 * shape.width
    square, up, down = (shape.width, shape.width), (inner, shape.width), (shape.width, inner)
    matrices = {"token_embd": (vocabulary, shape.width), "output": (vocabulary, shape.width)}
    norms = ["output_norm"]
    for layer in range(shape.layers):
        block = f"blk.{layer}"
        matrices |= {f"{block}.attn_{part}": square for part in ("q", "k", "v", "output")}
        matrices |= {f"{block}.ffn_gate": up, f"{block}.ffn_up": up, f"{block}.ffn_down": down}
        norms += [f"{block}.attn_norm", f"{block}.ffn_norm"]
    for name in norms:
        writer.add_tensor(f"{name}.weight", np.ones(shape.width, dtype=np.float32))
    for name, size in matrices.items():
        writer.add_tensor(f"{name}.weight", random.standard_normal(size, dtype=np.float32) * np.float32(0.02))
