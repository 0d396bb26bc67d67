"""Language models, classifiers of text, and networks that hear."""

from typing import Any

import torch
from torch import Tensor

from benchmarks.zoo.catalogue import Made, words
from benchmarks.zoo.hub.building import CATALOGUE, CLASSES, build

VOCABULARY, LENGTH, BATCH = 60, 9, 2
ENCODER: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 24,
    "num_labels": CLASSES,
}
DECODER: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "use_cache": False,
}


def padded_words() -> dict[str, Tensor]:
    """Return two sentences, the second of which is shorter, as a tokenizer would give them."""
    mask = torch.ones(BATCH, LENGTH, dtype=torch.long)
    mask[1, 6:] = 0
    return {"input_ids": words(BATCH, LENGTH, VOCABULARY), "attention_mask": mask}


@CATALOGUE.add
def hf_bert() -> Made:
    """Return BERT for classification, with token types and a mask."""
    inputs = padded_words()
    inputs["token_type_ids"] = (torch.arange(LENGTH) > 4).long().expand(BATCH, LENGTH).contiguous()
    return build("BertForSequenceClassification", "BertConfig", **ENCODER), inputs


@CATALOGUE.add
def hf_distilbert() -> Made:
    """Return DistilBERT for classification."""
    sizes = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": 24}
    model = build(
        "DistilBertForSequenceClassification",
        "DistilBertConfig",
        vocab_size=VOCABULARY,
        num_labels=CLASSES,
        **sizes,
    )
    return model, words(BATCH, LENGTH, VOCABULARY)


@CATALOGUE.add
def hf_roberta() -> Made:
    """Return RoBERTa for classification; its positions depend on where the padding is."""
    return build("RobertaForSequenceClassification", "RobertaConfig", **ENCODER), padded_words()


@CATALOGUE.add
def hf_albert() -> Made:
    """Return ALBERT for classification, whose layers share their weights."""
    return build("AlbertForSequenceClassification", "AlbertConfig", embedding_size=16, **ENCODER), padded_words()


@CATALOGUE.add
def hf_electra() -> Made:
    """Return ELECTRA for classification of tokens."""
    return build("ElectraForTokenClassification", "ElectraConfig", embedding_size=16, **ENCODER), padded_words()


@CATALOGUE.add
def hf_deberta() -> Made:
    """Return DeBERTa-v2 for classification, with attention to relative positions."""
    positions = {"relative_attention": True, "max_relative_positions": 16, "pos_att_type": ["p2c", "c2p"]}
    settings = {**ENCODER, **positions, "type_vocab_size": 0, "position_biased_input": False}
    return build("DebertaV2ForSequenceClassification", "DebertaV2Config", **settings), padded_words()


@CATALOGUE.add
def hf_gpt2() -> Made:
    """Return GPT-2 as a language model: fused queries, keys and values in `Conv1D`, tied embedding."""
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_inner": 64, "n_positions": 24}
    model = build("GPT2LMHeadModel", "GPT2Config", vocab_size=VOCABULARY, use_cache=False, **sizes)
    return model, words(BATCH, LENGTH, VOCABULARY)


@CATALOGUE.add
def hf_opt() -> Made:
    """Return OPT as a language model."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64}
    model = build(
        "OPTForCausalLM",
        "OPTConfig",
        vocab_size=VOCABULARY,
        word_embed_proj_dim=32,
        max_position_embeddings=24,
        use_cache=False,
        **sizes,
    )
    return model, words(BATCH, LENGTH, VOCABULARY)


@CATALOGUE.add
def hf_llama() -> Made:
    """Return Llama as a language model, two key/value heads for four query heads."""
    return build("LlamaForCausalLM", "LlamaConfig", **DECODER), words(BATCH, LENGTH, VOCABULARY)


@CATALOGUE.add
def hf_mistral() -> Made:
    """Return Mistral as a language model with a sliding window shorter than the text."""
    return build("MistralForCausalLM", "MistralConfig", sliding_window=4, **DECODER), words(BATCH, LENGTH, VOCABULARY)


@CATALOGUE.add
def hf_qwen2() -> Made:
    """Return Qwen2 as a language model with a tied embedding and biases for queries, keys and values."""
    model = build("Qwen2ForCausalLM", "Qwen2Config", tie_word_embeddings=True, **DECODER)
    return model, {"input_ids": words(BATCH, LENGTH, VOCABULARY)}


@CATALOGUE.add
def hf_mixtral() -> Made:
    """Return Mixtral as a language model: four experts, two for each token."""
    model = build("MixtralForCausalLM", "MixtralConfig", num_local_experts=4, num_experts_per_tok=2, **DECODER)
    return model, words(BATCH, LENGTH, VOCABULARY)


@CATALOGUE.add
def hf_t5() -> Made:
    """Return T5, which reads one text and writes another; heads are narrower than the width divided by their number."""
    sizes = {"d_model": 32, "d_kv": 6, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    model = build("T5ForConditionalGeneration", "T5Config", vocab_size=VOCABULARY, use_cache=False, **sizes)
    read, written = words(BATCH, LENGTH, VOCABULARY), words(BATCH, LENGTH - 2, VOCABULARY)
    return model, {"input_ids": read, "decoder_input_ids": written}


@CATALOGUE.add
def hf_bart() -> Made:
    """Return BART, which reads one text and writes another."""
    sizes = {f"{part}_{size}": 2 for part in ("encoder", "decoder") for size in ("layers", "attention_heads")}
    model = build(
        "BartForConditionalGeneration",
        "BartConfig",
        vocab_size=VOCABULARY,
        d_model=32,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=24,
        use_cache=False,
        **sizes,
    )
    read, written = words(BATCH, LENGTH, VOCABULARY), words(BATCH, LENGTH - 2, VOCABULARY)
    return model, {"input_ids": read, "decoder_input_ids": written}


@CATALOGUE.add
def hf_wav2vec2() -> Made:
    """Return Wav2Vec 2.0 for classification of sounds: strided convolutions, grouped positions with weight norm."""
    sizes = {name: size for name, size in ENCODER.items() if name not in ("vocab_size", "max_position_embeddings")}
    convolutions = {"conv_dim": (16, 16, 24), "conv_stride": (5, 2, 2), "conv_kernel": (10, 3, 3)}
    positions = {"num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2, "classifier_proj_size": 24}
    model = build("Wav2Vec2ForSequenceClassification", "Wav2Vec2Config", **sizes, **convolutions, **positions)
    return model, torch.randn(BATCH, 600)


@CATALOGUE.add
def hf_whisper() -> Made:
    """Return Whisper, which reads a spectrogram and writes a text."""
    sizes = {f"{part}_{size}": 2 for part in ("encoder", "decoder") for size in ("layers", "attention_heads")}
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3}
    model = build(
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        vocab_size=VOCABULARY,
        num_mel_bins=20,
        d_model=32,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_source_positions=25,
        max_target_positions=24,
        use_cache=False,
        **sizes,
        **special,
    )
    return model, {
        "input_features": torch.randn(BATCH, 20, 50),
        "decoder_input_ids": words(BATCH, LENGTH, VOCABULARY),
    }
