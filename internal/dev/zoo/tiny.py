"""Small configurations of the models that the exporters' scripts make, with random weights."""
import os, shutil
import torch

VOCABULARY = 512

DECODER = dict(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
               head_dim=16, max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=0)
EXPERTS = dict(num_local_experts=4, num_experts_per_tok=2)

# Decoders by their class of configuration, and what they have beyond DECODER.
DECODERS = {
    "llama": ("LlamaConfig", {}),
    "llama-tied": ("LlamaConfig", dict(tie_word_embeddings=True)),
    "llama3-rope": ("LlamaConfig", dict(rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64))),
    "qwen2": ("Qwen2Config", {}),
    "qwen3": ("Qwen3Config", {}),
    "qwen2-moe": ("Qwen2MoeConfig", dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64, shared_expert_intermediate_size=64, decoder_sparse_step=1)),
    "qwen3-moe": ("Qwen3MoeConfig", dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64, decoder_sparse_step=1)),
    "gemma": ("GemmaConfig", {}),
    "gemma2": ("Gemma2Config", dict(query_pre_attn_scalar=16, sliding_window=8)),
    "gemma3": ("Gemma3TextConfig", dict(query_pre_attn_scalar=16, sliding_window=8, layer_types=["sliding_attention", "full_attention"], rope_local_base_freq=10000.0)),
    "phi": ("PhiConfig", dict(partial_rotary_factor=0.5)),
    "phi3": ("Phi3Config", dict(original_max_position_embeddings=256)),
    "phi3-longrope": ("Phi3Config", dict(original_max_position_embeddings=64, rope_scaling=dict(type="longrope", short_factor=[1.0] * 8, long_factor=[2.0] * 8))),
    "phi4-partial": ("Phi3Config", dict(original_max_position_embeddings=256, partial_rotary_factor=0.75)),
    "phimoe": ("PhimoeConfig", dict(**EXPERTS, original_max_position_embeddings=64, rope_scaling=dict(type="longrope", short_factor=[1.0] * 8, long_factor=[2.0] * 8,
               short_mscale=1.0, long_mscale=1.0, original_max_position_embeddings=64))),
    "mistral": ("MistralConfig", dict(sliding_window=None)),
    "mistral-sliding": ("MistralConfig", dict(sliding_window=8)),
    "mixtral": ("MixtralConfig", EXPERTS),
    "gpt-oss": ("GptOssConfig", dict(**EXPERTS, sliding_window=8, layer_types=["sliding_attention", "full_attention"])),
    "olmo": ("OlmoConfig", {}),
    "smollm3": ("SmolLM3Config", {}),
    "granite": ("GraniteConfig", {}),
    "gpt2": ("GPT2Config", dict(n_embd=64, n_layer=2, n_head=4, n_positions=256)),
    "opt": ("OPTConfig", dict(ffn_dim=128, word_embed_proj_dim=64)),
    "bloom": ("BloomConfig", dict(n_layer=2, n_head=4)),
    "falcon": ("FalconConfig", {}),
    "gpt-neox": ("GPTNeoXConfig", {}),
}

# Encoders, encoder-decoders, and models of pictures and speech: class of configuration, of model, and options of the configuration.
ENCODER = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4)
SEQ2SEQ = dict(vocab_size=VOCABULARY, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
               encoder_ffn_dim=128, decoder_ffn_dim=128, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
PICTURE = dict(image_size=32, patch_size=8, num_channels=3)
WHISPER = dict(**SEQ2SEQ, num_mel_bins=80, max_source_positions=1500, max_target_positions=64, suppress_tokens=None, begin_suppress_tokens=None)
OTHERS = {
    "bert": ("BertConfig", "BertModel", dict(**ENCODER, vocab_size=VOCABULARY)),
    "distilbert": ("DistilBertConfig", "DistilBertModel", dict(vocab_size=VOCABULARY, dim=64, hidden_dim=128, n_layers=2, n_heads=4)),
    "roberta": ("RobertaConfig", "RobertaModel", dict(**ENCODER, vocab_size=VOCABULARY)),
    "deberta-v2": ("DebertaV2Config", "DebertaV2Model", dict(**ENCODER, vocab_size=VOCABULARY, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=16)),
    "modernbert": ("ModernBertConfig", "ModernBertModel", dict(**ENCODER, vocab_size=VOCABULARY, local_attention=8, pad_token_id=0)),
    "t5": ("T5Config", "T5ForConditionalGeneration", dict(vocab_size=VOCABULARY, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0)),
    "bart": ("BartConfig", "BartForConditionalGeneration", dict(**SEQ2SEQ, max_position_embeddings=128)),
    "marian": ("MarianConfig", "MarianMTModel", dict(**SEQ2SEQ, max_position_embeddings=128)),
    "whisper": ("WhisperConfig", "WhisperForConditionalGeneration", WHISPER),
    "clip": ("CLIPConfig", "CLIPModel", dict(text_config=dict(**ENCODER, vocab_size=VOCABULARY, max_position_embeddings=77, projection_dim=32),
             vision_config=dict(**ENCODER, **PICTURE, projection_dim=32), projection_dim=32)),
    "siglip": ("SiglipConfig", "SiglipModel", dict(text_config=dict(**ENCODER, vocab_size=VOCABULARY, max_position_embeddings=64), vision_config=dict(**ENCODER, **PICTURE))),
    "sam": ("SamConfig", "SamModel", dict(vision_config=dict(hidden_size=32, output_channels=32, num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=16, window_size=2,
            global_attn_indexes=[1], mlp_dim=64, num_pos_feats=16), prompt_encoder_config=dict(hidden_size=32, image_size=64, patch_size=16, image_embedding_size=4),
            mask_decoder_config=dict(hidden_size=32, mlp_dim=64, num_attention_heads=4, iou_head_hidden_dim=32))),
    "vit": ("ViTConfig", "ViTForImageClassification", dict(**ENCODER, **PICTURE)),
    "deit": ("DeiTConfig", "DeiTForImageClassification", dict(**ENCODER, **PICTURE)),
    "dinov2": ("Dinov2Config", "Dinov2Model", dict(**ENCODER, **PICTURE)),
    "beit": ("BeitConfig", "BeitForImageClassification", dict(**ENCODER, **PICTURE, use_relative_position_bias=True)),
    "swin": ("SwinConfig", "SwinForImageClassification", dict(image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)),
    "swinv2": ("Swinv2Config", "Swinv2ForImageClassification", dict(image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)),
    "convnext": ("ConvNextConfig", "ConvNextForImageClassification", dict(image_size=32, hidden_sizes=[16, 32], depths=[1, 1], num_stages=2)),
    "convnextv2": ("ConvNextV2Config", "ConvNextV2ForImageClassification", dict(image_size=32, hidden_sizes=[16, 32], depths=[1, 1], num_stages=2)),
    "resnet": ("ResNetConfig", "ResNetForImageClassification", dict(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic")),
    "mobilenet-v2": ("MobileNetV2Config", "MobileNetV2ForImageClassification", dict(image_size=32, depth_multiplier=0.35)),
    "segformer": ("SegformerConfig", "SegformerForSemanticSegmentation", dict(num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[16, 32], patch_sizes=[7, 3], strides=[4, 2],
                  num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=32)),
    "detr": ("DetrConfig", "DetrForObjectDetection", dict(use_timm_backbone=False, backbone=None, use_pretrained_backbone=False, num_queries=8, d_model=64, encoder_layers=2, decoder_layers=2,
             encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64)),
    "yolos": ("YolosConfig", "YolosForObjectDetection", dict(**ENCODER, image_size=[32, 32], patch_size=8, num_detection_tokens=8)),
    "wav2vec2": ("Wav2Vec2Config", "Wav2Vec2ForCTC", dict(**ENCODER, vocab_size=32, conv_dim=[32] * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)),
    "hubert": ("HubertConfig", "HubertModel", dict(**ENCODER, vocab_size=32, conv_dim=[32] * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)),
    "vits": ("VitsConfig", "VitsModel", dict(vocab_size=38, hidden_size=32, num_hidden_layers=2, ffn_dim=64, flow_size=32, spectrogram_bins=33, upsample_initial_channel=64,
             posterior_encoder_num_wavenet_layers=2, prior_encoder_num_wavenet_layers=2)),
}


def configuration(name):
    """The class of a model, none for a decoder, and its configuration."""
    import transformers
    if name in DECODERS:
        kind, more = DECODERS[name]
        return None, getattr(transformers, kind)(**{**DECODER, **more})
    kind, model, more = OTHERS[name]
    return getattr(transformers, model), getattr(transformers, kind)(**more)


def build(name, dtype=torch.float32):
    """A model with random weights. Biases and scales differ too, as those of trained models: exporters store equal ones once."""
    import transformers
    torch.manual_seed(0)
    kind, config = configuration(name)
    if kind is None:
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
    else:
        model = kind(config).to(dtype)
    for p in model.parameters():
        if p.dim() == 1:
            p.data += 0.02 * torch.randn_like(p)
    return model.eval()


def tokenizer(folder):
    """Writes a tokenizer of words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    words = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3} | {f"w{i}": i for i in range(4, VOCABULARY)}
    t = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=t, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>").save_pretrained(folder)


def save(name, folder, dtype=torch.float32):
    """Writes a checkpoint of random weights as from the Hugging Face hub."""
    os.makedirs(folder, exist_ok=True)
    model = build(name, dtype)
    model.save_pretrained(folder)
    if name == "gpt-oss":
        experts(model.config, os.path.join(folder, "model.safetensors"))
    tokenizer(folder)


def experts(c, path):
    """Adds experts in MXFP4 to a checkpoint, which those of GPT-OSS have: blocks of 32 numbers of 4 bits, and a scale of 8 bits for each."""
    from safetensors.torch import load_file, save_file
    weights = load_file(path)
    for i in range(c.num_hidden_layers):
        for matrix, rows, columns in (("gate_up_proj", 2 * c.intermediate_size, c.hidden_size), ("down_proj", c.hidden_size, c.intermediate_size)):
            shape = (c.num_local_experts, rows, columns // 32)
            weights[f"model.layers.{i}.mlp.experts.{matrix}_blocks"] = torch.randint(0, 256, (*shape, 16), dtype=torch.uint8)
            weights[f"model.layers.{i}.mlp.experts.{matrix}_scales"] = torch.randint(118, 123, shape, dtype=torch.uint8)
    save_file(weights, path, metadata={"format": "pt"})


def export(out, makers):
    """Calls the maker of each folder of out that does not exist, by its name. One that fails has a line in out/failed.txt, and no folder."""
    failed = []
    for name, make in makers.items():
        folder = os.path.join(out, name)
        if os.path.exists(folder):
            continue
        try:
            make(folder)
        except (Exception, SystemExit) as e:
            shutil.rmtree(folder, ignore_errors=True)
            cause = e.__cause__ or e
            failed.append(f"{name}: {type(cause).__name__}: {(str(cause).strip() or '?').splitlines()[0][:200]}\n")
            print(failed[-1], end="", flush=True)
    with open(os.path.join(out, "failed.txt"), "w") as f:
        f.writelines(failed)
