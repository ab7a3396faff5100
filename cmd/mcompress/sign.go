package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/mcompress/mcompress"
)

// passphraseVariable is the environment variable that decrypts keys.
const passphraseVariable = "MCOMPRESS_KEY_PASSPHRASE"

func signCommand(t *tool) *cli.Command {
	var o mcompress.SignOptions
	return &cli.Command{
		Name:      "sign",
		Usage:     "sign a model with its reports, or a folder, with a key (OpenSSF Model Signing)",
		ArgsUsage: "MODEL|DIR",
		Description: `Writes the signature of a model with its external data and its reports to NAME.sig, or that of all
files of a folder to model.sig in it. verify-report and model-signing verify it. An encrypted key
is decrypted with $` + passphraseVariable + `, or with a passphrase that is read from the terminal.`,
		Flags: group("flags", func(fs *flag.FlagSet) {
			fs.StringVar(&o.Key, "key", "", "private `key`, a file or env:NAME: elliptic curve P-256, P-384 or P-521 as PEM")
			outPathVar(fs, &o.Output, "output", "`path` of the signature (default: NAME.sig, or model.sig in the folder)")
			fs.BoolVar(&o.Symlinks, "allow-symlinks", false, "sign the files that symbolic links name")
		}),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			o.Passphrase, o.Events = func() ([]byte, error) { return passphrase(c.Context) }, t.events(c.Command.Name)
			s, err := mcompress.Sign(c.Context, args[0], o)
			if err != nil {
				return err
			}
			if t.json {
				return t.encode(s)
			}
			_, err = fmt.Fprintf(t.stdout, "%s: signature of %d files\n", s.Path, len(s.Files))
			return err
		},
	}
}

// passphrase is that of an encrypted key.
func passphrase(ctx context.Context) ([]byte, error) {
	if word, ok := os.LookupEnv(passphraseVariable); ok {
		return []byte(word), nil
	}
	in := int(os.Stdin.Fd())
	if !term.IsTerminal(in) {
		return nil, fmt.Errorf("the key is encrypted: set %s to its passphrase", passphraseVariable)
	}
	state, err := term.GetState(in)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { // an interruption does not end reading
		term.Restore(in, state)
		fmt.Fprintln(os.Stderr)
		os.Exit(exitIO)
	})()
	fmt.Fprint(os.Stderr, "passphrase of the key: ")
	word, err := term.ReadPassword(in)
	fmt.Fprintln(os.Stderr)
	return word, err
}
