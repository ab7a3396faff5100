package conform

// Sign signs a folder, or a single file, by model-signing with a private key in a file.
func (w *Worker) Sign(folder, signature, key string) error {
	return w.call("sign", map[string]any{"folder": folder, "signature": signature, "key": key}, nil)
}

// VerifySignature verifies the signature of a folder by model-signing with a public key in a file. Files that are not
// signed are an error unless unsigned.
func (w *Worker) VerifySignature(folder, signature, key string, unsigned bool) error {
	return w.call("verify_signature", map[string]any{"folder": folder, "signature": signature, "key": key,
		"unsigned": unsigned}, nil)
}

// A Card is the metadata of a model card.
type Card struct {
	BaseModel   string   `json:"base_model"`
	Relation    string   `json:"base_model_relation"`
	Library     string   `json:"library_name"`
	PipelineTag string   `json:"pipeline_tag"`
	Tags        []string `json:"tags"`
	Model       string   `json:"model"` // of the results
	Results     []struct {
		Metric  string  `json:"metric"` // type
		Name    string  `json:"name"`
		Value   float64 `json:"value"`
		Dataset string  `json:"dataset"`
		Task    string  `json:"task"`
	} `json:"results"`
}

// ModelCard reads a model card by huggingface_hub.
func (w *Worker) ModelCard(text string) (*Card, error) {
	c := &Card{}
	return c, w.call("model_card", map[string]any{"text": text}, c)
}

// HubUpload returns the files that huggingface_hub's upload_folder would upload from a folder.
func (w *Worker) HubUpload(folder string) ([]string, error) {
	var files []string
	return files, w.call("hub_upload", map[string]any{"folder": folder}, &files)
}

// CycloneDX validates a bill of materials in CycloneDX 1.7 by cyclonedx-python-lib, strictly.
func (w *Worker) CycloneDX(text string) error {
	return w.call("cyclonedx", map[string]any{"text": text}, nil)
}

// Provenance validates an in-toto statement with SLSA provenance v1 by the messages of both specifications.
func (w *Worker) Provenance(text string) error {
	return w.call("provenance", map[string]any{"text": text}, nil)
}
