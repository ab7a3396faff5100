// Package sign signs the files of a model with a key, and verifies such signatures, in the format of OpenSSF Model
// Signing v1.0: an in-toto statement with the SHA-256 of every file, in a DSSE envelope, in a Sigstore bundle.
// Signatures of the Python package model-signing are verified here, and the other way round.
//
// It must not depend on the network: certificates and transparency logs (keyless signing) are left to cosign.
package sign
