package untrusted

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// CheckSHA256 returns an error unless text is a SHA-256 as this module writes it: 64 hexadecimal digits in lower case.
// Only then may a part of it become a part of a path or of a URL.
func CheckSHA256(text string) error {
	sum, err := hex.DecodeString(text)
	if err != nil || len(sum) != sha256.Size || hex.EncodeToString(sum) != text {
		return fmt.Errorf("%q is not a SHA-256 of 64 hexadecimal digits", text)
	}
	return nil
}
