package pass

import "strings"

// Keys of config.json for numbers that pruning changes.
const (
	AttentionHeads   = "num_attention_heads"
	KeyValueHeads    = "num_key_value_heads"
	IntermediateSize = "intermediate_size"
)

// A ConfigValue is a number of a model's architecture that a step changed, and that configuration outside of the model
// has too.
type ConfigValue struct {
	Name     string   `json:"name"`               // key of config.json
	Submodel Submodel `json:"submodel,omitempty"` // of the model
	From     int      `json:"from"`
	// To is ascending: several numbers where layers differ, which configuration cannot have.
	To []int `json:"to"`
	// HeadSize is the size of attention heads, which configuration may leave to be computed from their number.
	HeadSize int `json:"head_size,omitempty"`
	// Change numbers the changes of a run, which configuration follows one after the other.
	Change int `json:"-"`
}

// Changed reports whether the number is another one in some layer.
func (v ConfigValue) Changed() bool { return len(v.To) != 1 || v.To[0] != v.From }

// A Submodel is the part of a model that layers belong to, where configuration has numbers for several; empty if it is
// not known.
type Submodel string

// The parts of models: the decoder of an encoder and a decoder, else what reads data of one kind. What joins text with
// images or sound is a language model.
const (
	Decoder Submodel = "decoder"
	Text    Submodel = "text"
	Vision  Submodel = "vision"
	Audio   Submodel = "audio"
)

// SubmodelOf is the part that depends on inputs of the given names, as exporters of PyTorch's models name them.
func SubmodelOf(inputs []string) Submodel {
	found := map[Submodel]bool{}
	for _, name := range inputs {
		switch {
		// At once: what reads the encoder's states is a decoder, whatever else it reads.
		case strings.HasPrefix(name, "decoder_"), name == "encoder_hidden_states", name == "encoder_outputs",
			strings.Contains(name, ".decoder."):
			return Decoder
		case name == "input_ids", name == "inputs_embeds":
			found[Text] = true
		case name == "pixel_values":
			found[Vision] = true
		case name == "input_features", name == "input_values":
			found[Audio] = true
		}
	}
	switch {
	case found[Text]:
		return Text
	case found[Vision] && !found[Audio]:
		return Vision
	case found[Audio] && !found[Vision]:
		return Audio
	}
	return ""
}
