package cli

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/belay-run/belay/audit"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/visible"
	"github.com/spf13/cobra"
)

// auditStore calls f with the store, if it has a chain.
func (a *app) auditStore(ctx context.Context, f func(audit.Store) error) error {
	settings, err := a.settings()
	if err != nil {
		return err
	}
	if settings.Server != "" { // the store here is not the one that the other questions are about
		return usage("the settings name the server %s: run this on the server's machine, with its store, and without --server, BELAY_SERVER and the setting server", settings.Server)
	}
	return a.look(ctx, func(store assembly.Store) error {
		chained, ok := store.(audit.Store)
		if !ok {
			return fmt.Errorf("a store of type %T has no audit chain", store)
		}
		return f(chained)
	})
}

func (a *app) auditVerify() *cobra.Command {
	var words []string
	var export, key string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Find records that something other than Belay has changed",
		Long: `Compares the records of hooks, the approvals and the grants with the chain of hashes, and lists the rows that were changed,
removed or inserted. The exit code is 1 if there are any.

Somebody who can write to the database can make the whole chain anew, or cut off its end. An anchor that you have kept elsewhere
shows that: "belay audit anchor" prints one. With --export, checks a file of "belay audit export" and its signature, without a store.`,
		Example: `  belay audit verify
  belay audit verify --anchor 4711:9f2c…
  belay audit verify --export audit.jsonl --key audit.pub`,
		Args: arguments(0, 0, "verify takes flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			anchors := make([]audit.Anchor, len(words))
			for i, word := range words {
				if err := anchors[i].UnmarshalText([]byte(word)); err != nil {
					return usage("--anchor: %w", err)
				}
			}
			if export != "" {
				return a.verifyExport(cmd.Context(), a.at(export), a.at(key), anchors, asJSON)
			}
			if key != "" {
				return usage("--key is for --export: the chain in a store has no signature")
			}
			return a.auditStore(cmd.Context(), func(store audit.Store) error {
				v, err := store.VerifyAudit(cmd.Context(), anchors)
				if err != nil {
					return err
				}
				return a.tellVerification(v, len(anchors), asJSON)
			})
		},
	}
	cmd.Flags().StringArrayVar(&words, "anchor", nil, "an anchor that the chain must have, NUMBER:HASH; may be repeated")
	cmd.Flags().StringVar(&export, "export", "", "check this file of \"belay audit export\" instead of a store")
	cmd.Flags().StringVar(&key, "key", "", "with --export: the file with the public key (Ed25519, PEM)")
	jsonFlag(cmd, &asJSON, "print one JSON object")
	return cmd
}

func (a *app) verifyExport(ctx context.Context, file, key string, anchors []audit.Anchor, asJSON bool) error {
	if key == "" {
		return usage("--export needs the public key of the signer: add --key audit.pub")
	}
	public, err := readPublicKey(key)
	if err != nil {
		return usage("--key: %w", err)
	}
	in, err := os.Open(file)
	if err != nil {
		return usage("--export: %w", err)
	}
	defer func() { _ = in.Close() }() // only read
	v, err := audit.VerifyExport(ctx, in, public, anchors)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return a.tellVerification(v, len(anchors), asJSON)
}

func (a *app) tellVerification(v *audit.Verification, anchors int, asJSON bool) error {
	failed := error(nil)
	if len(v.Problems) > 0 {
		failed = &exitError{code: exitFailed}
	}
	if asJSON {
		return errors.Join(a.printJSON(v), failed)
	}
	s := a.onOut
	for _, p := range v.Problems {
		where := p.Table + " " + p.Row
		if p.Session != "" && p.Session != p.Row {
			where += " of session " + p.Session
		}
		fmt.Fprintf(a.out, "%s  %s: %s\n", s.red(string(p.Kind)), oneLine(where), oneLine(p.Text))
	}
	if v.More > 0 {
		fmt.Fprintf(a.out, "and %d more\n", v.More)
	}
	verdict := s.green("intact")
	if failed != nil {
		verdict = s.red(visible.Counted(len(v.Problems)+int(v.More), "problem"))
	}
	var t table
	t.add(s.dim("chain"), fmt.Sprintf("%s  %s", entriesOf(v.Entries), verdict))
	t.add(s.dim("covers"), fmt.Sprintf("%s, %s, grants of %s", visible.Counted(int(v.Runs), "row")+" of the journal", visible.Counted(int(v.Approvals), "approval"), visible.Counted(int(v.Grants), "session")))
	if v.Deleted+v.DeletedRuns+v.DeletedApprovals > 0 {
		t.add(s.dim("deleted"), fmt.Sprintf("%s, %s of the journal, %s: only hashes are left", visible.Counted(int(v.Deleted), "session"), visible.Counted(int(v.DeletedRuns), "row"), visible.Counted(int(v.DeletedApprovals), "approval")))
	}
	if !v.First.IsZero() {
		t.add(s.dim("from"), v.First.Local().Format(time.DateTime)+" to "+v.Last.Local().Format(time.DateTime))
	}
	if anchors == 0 {
		t.add(s.dim("anchors"), "none: without one, verify cannot find a chain that was made anew as a whole")
	} else {
		t.add(s.dim("anchors"), visible.Counted(anchors, "anchor")+" checked")
	}
	return errors.Join(t.write(a.out, nil), failed)
}

func entriesOf(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprint(n, " entries")
}

func (a *app) auditAnchor() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "anchor",
		Short: "Print the hash of the last entry of the chain, to keep it elsewhere",
		Long: `Prints an anchor: the number and the hash of the last entry of the chain. Keep it where nobody who can write to the store can
change it. "belay audit verify --anchor" then finds a change of anything that was stored before.`,
		Example: `  belay audit anchor
  belay audit anchor | ssh log.example 'cat >> belay-anchors'`,
		Args: arguments(0, 0, "anchor takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.auditStore(cmd.Context(), func(store audit.Store) error {
				anchor, err := store.AnchorAudit(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(map[string]any{"anchor": anchor, "time": time.Now().UTC()})
				}
				_, err = fmt.Fprintln(a.out, anchor)
				return err
			})
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON object, with the time")
	return cmd
}

func (a *app) auditExport() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "export --key FILE",
		Short: "Write the chain and its records as JSON lines, with a signature",
		Long: `Writes the chain, the records of hooks and the approvals to standard output, with a signature at the end. The output has no text
of conversations: reasons and patterns of approvals are left out. FILE has a private Ed25519 key in PEM, as openssl makes it.`,
		Example: `  openssl genpkey -algorithm ed25519 -out audit.key
  openssl pkey -in audit.key -pubout -out audit.pub
  belay audit export --key audit.key > audit.jsonl
  belay audit verify --export audit.jsonl --key audit.pub`,
		Args: arguments(0, 0, "export takes flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if key == "" {
				return usage("name the private key: --key audit.key; `openssl genpkey -algorithm ed25519 -out audit.key` makes one")
			}
			private, err := readPrivateKey(a.at(key))
			if err != nil {
				return usage("--key: %w", err)
			}
			return a.auditStore(cmd.Context(), func(store audit.Store) error { return a.exportAudit(cmd.Context(), store, private) })
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "the file with the private key (Ed25519, PEM)")
	return cmd
}

// exportAudit writes the chain and its records. If they do not match, or if that is unknown, it says
// so first: a signature says only that nothing has changed since.
func (a *app) exportAudit(ctx context.Context, store audit.Store, private ed25519.PrivateKey) error {
	v, err := store.VerifyAudit(ctx, nil)
	if err != nil { // it reads more than the export has
		a.remarkf("cannot compare the store with its chain: %v; the export has the records as they are now", err)
	} else if found := len(v.Problems) + int(v.More); found > 0 {
		a.remarkf("the store does not match its chain (%s): `belay audit verify` lists what was changed; the export has the records as they are now", visible.Counted(found, "problem"))
	}
	return audit.Export(ctx, store, a.out, private)
}

// readPEM reads the first block of a PEM file.
func readPEM(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		if raw, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(text))); err == nil && len(raw) == ed25519.PublicKeySize {
			return nil, fmt.Errorf("%s is not PEM: `openssl pkey -in audit.key -pubout` writes the public key as PEM", file)
		}
		return nil, fmt.Errorf("%s is not PEM: it needs a line -----BEGIN …", file)
	}
	return block.Bytes, nil
}

func readPrivateKey(file string) (ed25519.PrivateKey, error) {
	data, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(data)
	private, ok := key.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("%s has no private Ed25519 key: `openssl genpkey -algorithm ed25519 -out audit.key` makes one", file)
	}
	return private, nil
}

func readPublicKey(file string) (ed25519.PublicKey, error) {
	data, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(data)
	public, ok := key.(ed25519.PublicKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("%s has no public Ed25519 key: `openssl pkey -in audit.key -pubout -out audit.pub` writes it", file)
	}
	return public, nil
}
