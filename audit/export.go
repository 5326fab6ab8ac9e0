package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// ExportVersion is the version of the format of exports.
const ExportVersion = 1

// ExportLine is a line of an export. Type says which other fields are set. The first line has
// the type "audit", then come "entry" and "row", and the last one is "signature".
type ExportLine struct {
	Type string `json:"type"`
	// Version and Time are of the export. Columns has the columns of the rows, by table.
	Version int                 `json:"version,omitempty"`
	Time    time.Time           `json:"time,omitzero"`
	Columns map[string][]string `json:"columns,omitempty"`
	Entry   *Entry              `json:"entry,omitempty"`
	// Table and Values are a row.
	Table  string   `json:"table,omitempty"`
	Values []string `json:"values,omitempty"`
	// Key is the public key, in base64. Signature is the Ed25519 signature of the SHA-256
	// hash of all lines before.
	Key       string `json:"key,omitempty"`
	Signature string `json:"signature,omitempty"`
}

// exported are the tables in an export, in this order. The texts of approvals and the grants
// are left out: they can quote what was said.
var exported = []*Table{&Runs, &Approvals, &Hooks}

// WriteExport writes an export without a signature. Stores call it.
func WriteExport(ctx context.Context, from Source, to io.Writer) error {
	lines := json.NewEncoder(to)
	lines.SetEscapeHTML(false)
	first := ExportLine{Type: "audit", Version: ExportVersion, Time: time.Now().UTC(), Columns: make(map[string][]string)}
	for _, t := range exported {
		first.Columns[t.Name] = t.Columns
	}
	if err := lines.Encode(first); err != nil {
		return err //nolint:wrapcheck // the writer's own error
	}
	if err := from.Entries(ctx, func(e *Entry, _ string) error { return lines.Encode(ExportLine{Type: "entry", Entry: e}) }); err != nil {
		return err
	}
	for _, t := range exported {
		err := from.Rows(ctx, t, func(values []string) error {
			return lines.Encode(ExportLine{Type: "row", Table: t.Name, Values: values})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Export writes an export of a store with a signature.
func Export(ctx context.Context, store Store, to io.Writer, key ed25519.PrivateKey) error {
	sum := sha256.New()
	if err := store.ExportAudit(ctx, io.MultiWriter(to, sum)); err != nil {
		return err
	}
	lines := json.NewEncoder(to)
	lines.SetEscapeHTML(false)
	return lines.Encode(ExportLine{ //nolint:wrapcheck // the writer's own error
		Type: "signature", Key: base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey)), //nolint:forcetypeassert // ed25519 says so
		Signature: base64.StdEncoding.EncodeToString(ed25519.Sign(key, sum.Sum(nil))),
	})
}

// Errors of VerifyExport. Use errors.Is.
var (
	// ErrSignature says that an export has no signature, or one that does not fit.
	ErrSignature = errors.New("audit: the signature does not match")
	// ErrExport says that a file is not an export.
	ErrExport = errors.New("audit: this is not an export")
)

// VerifyExport checks the signature of an export, and compares its rows with its chain. The
// export has neither the texts of approvals nor grants, so these are not compared.
func VerifyExport(ctx context.Context, from io.Reader, key ed25519.PublicKey, anchors []Anchor) (*Verification, error) {
	e := &export{tables: make(map[string]*Table), rowsOf: make(map[string][][]string)}
	if err := e.read(from, key); err != nil {
		return nil, err
	}
	return Verify(ctx, e, &VerifyOptions{Anchors: anchors})
}

// export is an export in memory.
type export struct {
	chain  []Entry
	tables map[string]*Table // with the columns that the file names
	rowsOf map[string][][]string
}

func (e *export) read(from io.Reader, key ed25519.PublicKey) error {
	in, sum := bufio.NewReader(from), sha256.New()
	for number := 1; ; number++ {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			return fmt.Errorf("%w: the file ends before the signature, at line %d", ErrSignature, number)
		}
		if err != nil && !errors.Is(err, io.EOF) { // the last line may have lost its end
			return fmt.Errorf("line %d: %w", number, err)
		}
		var line ExportLine
		decode := json.NewDecoder(bytes.NewReader(text))
		decode.DisallowUnknownFields()
		if err := decode.Decode(&line); err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrExport, number, err)
		}
		if _, err := decode.Token(); !errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: line %d has more than one value", ErrExport, number)
		}
		if number == 1 && (line.Type != "audit" || line.Version != ExportVersion) {
			return fmt.Errorf("%w of version %d: the first line does not say so", ErrExport, ExportVersion)
		}
		if line.Type == "signature" {
			signature, err := base64.StdEncoding.DecodeString(line.Signature)
			if err != nil || !ed25519.Verify(key, sum.Sum(nil), signature) {
				return fmt.Errorf("%w: the file was changed, or another key has signed it (the file names the key %s)", ErrSignature, line.Key)
			}
			if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
				return fmt.Errorf("%w: there is more after the signature", ErrSignature)
			}
			return nil
		}
		_, _ = sum.Write(text) // a hash never fails
		if err := e.add(&line, number); err != nil {
			return err
		}
	}
}

func (e *export) add(line *ExportLine, number int) error {
	switch {
	case line.Type == "audit" && number == 1:
		for _, t := range exported {
			own := *t
			if own.Columns = line.Columns[t.Name]; len(own.Columns) == 0 {
				return fmt.Errorf("%w: line %d does not name the columns of %s", ErrExport, number, t.Name)
			}
			e.tables[t.Name] = &own
		}
		return nil
	case line.Type == "entry" && line.Entry != nil:
		e.chain = append(e.chain, *line.Entry)
		return nil
	case line.Type == "row":
		if t := e.tables[line.Table]; t != nil && len(line.Values) == len(t.Columns) {
			e.rowsOf[t.Name] = append(e.rowsOf[t.Name], line.Values)
			return nil
		}
	}
	return fmt.Errorf("%w: line %d has an unknown type, table or number of columns", ErrExport, number)
}

// Table returns a table with the columns of the file.
func (e *export) Table(t *Table) *Table { return e.tables[t.Name] }

// Entries yields the chain.
func (e *export) Entries(_ context.Context, each func(e *Entry, wrong string) error) error {
	for i := range e.chain {
		if err := each(&e.chain[i], ""); err != nil {
			return err
		}
	}
	return nil
}

// Rows yields a table.
func (e *export) Rows(_ context.Context, t *Table, each func([]string) error) error {
	for _, row := range e.rowsOf[t.Name] {
		if err := each(row); err != nil {
			return err
		}
	}
	return nil
}

// Grants yields nothing.
func (e *export) Grants(context.Context, func(session, hash string) error) error { return nil }
