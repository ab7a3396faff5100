package conform

// Sign signs a folder, or a single file, by model-signing with a private key in a file.
func (w *Worker) Sign(folder, signature, key string) error {
	return w.call("sign", map[string]any{"folder": folder, "signature": signature, "key": key}, nil)
}

// VerifySignature verifies the signature of a folder by model-signing with a public key in a file. Files that are not signed are an
// error unless unsigned.
func (w *Worker) VerifySignature(folder, signature, key string, unsigned bool) error {
	return w.call("verify_signature", map[string]any{"folder": folder, "signature": signature, "key": key, "unsigned": unsigned}, nil)
}
