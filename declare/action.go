package declare

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// newAction returns the function that runs a built-in action.
func (h *handler) newAction() (func(ctx context.Context, e *worker.Envelope) (json.RawMessage, error), error) {
	a := h.d.Action
	if a == nil {
		return nil, errors.New("the action has no name")
	}
	var answer map[string]any
	switch a.Name {
	case "log":
		return h.log, nil
	case "save_json":
		if err := saveable(a.Text); err != nil {
			return nil, err
		}
		return h.saveJSON, nil
	case "approve":
		answer = map[string]any{"decision": "ask", "reason": cmp.Or(a.Text, h.id+" asks for approval")}
	case "deny":
		answer = h.codec.blocking("deny", cmp.Or(a.Text, h.id+" denies it"), nil)
	case "remind":
		answer = map[string]any{"context": []map[string]string{{"text": a.Text}}}
	default:
		return nil, fmt.Errorf("there is no action %q", a.Name)
	}
	data, err := encode(answer)
	if err == nil {
		err = h.codec.wire.CheckAnswer(data)
	}
	if err != nil {
		return nil, fmt.Errorf("the action %s cannot be used at %s: %w", a.Name, h.d.Phase, err)
	}
	return func(context.Context, *worker.Envelope) (json.RawMessage, error) { return data, nil }, nil
}

// answers reports whether the action only answers. All other actions write something.
func (a *Action) answers() bool {
	switch a.Name {
	case "approve", "deny", "remind":
		return true
	default:
		return false
	}
}

// log writes a line about the input to the log: names, size and hash. It writes the
// content only if the declaration says so.
func (h *handler) log(ctx context.Context, e *worker.Envelope) (json.RawMessage, error) {
	sum := sha256.Sum256(e.Input)
	attrs := []slog.Attr{
		slog.String("message", h.d.Action.Text), slog.String("phase", e.Phase), slog.String("subscription", h.id), slog.String("session", e.Session),
		slog.String("turn", e.Turn), slog.Int("step", e.Step), slog.String("agent", e.Agent),
		slog.Int("input_size", len(e.Input)), slog.String("input_hash", "sha256:"+hex.EncodeToString(sum[:])),
	}
	var about struct {
		Tool string `json:"tool"`
	}
	if json.Unmarshal(e.Input, &about) == nil && about.Tool != "" { // some phases have no tool
		attrs = append(attrs, slog.String("tool", about.Tool))
	}
	if h.d.Action.Content {
		input, err := h.set.redact.json(e.Input)
		if err != nil {
			return nil, err
		}
		attrs = append(attrs, slog.String("input", string(input)))
	}
	h.set.opts.Logger.LogAttrs(ctx, h.d.Action.Level, "hook", attrs...)
	return nil, nil
}

// saveJSON removes secrets from the envelope, and appends it as one line to a file. The
// file is below the directory of the hook file. Links that lead out of that directory are
// not followed.
func (h *handler) saveJSON(_ context.Context, e *worker.Envelope) (json.RawMessage, error) {
	line, err := encode(e)
	if err != nil {
		return nil, err
	}
	if line, err = h.set.redact.json(line); err != nil {
		return nil, err
	}
	if err := appendLine(h.d.Dir, h.d.Action.Text, append(line, '\n')); err != nil {
		return nil, &hook.SafeError{Code: codes.Error, Message: "save_json cannot write its file", Err: err}
	}
	return nil, nil
}

// saveable rejects files that save_json must not write: files outside the directory, and
// files that a program could run or read as its settings. A model writes a part of the
// content, so such a file would be dangerous.
func saveable(name string) error {
	ext := strings.ToLower(path.Ext(filepath.ToSlash(name)))
	switch {
	case !filepath.IsLocal(filepath.FromSlash(name)):
		return fmt.Errorf("save_json cannot write %q, because it is outside the directory of the hook file: use a relative path inside that directory", name)
	case ext != ".jsonl" && ext != ".ndjson":
		return fmt.Errorf("save_json writes JSON lines: use a file name that ends in .jsonl instead of %q", name)
	default:
		return nil
	}
}

func appendLine(dir, name string, line []byte) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("save_json: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	name = filepath.FromSlash(path.Clean(filepath.ToSlash(name)))
	if parent := filepath.Dir(name); parent != "." {
		if err := root.MkdirAll(parent, 0o700); err != nil {
			return fmt.Errorf("save_json: %w", err)
		}
	}
	if before, err := root.Lstat(name); err == nil && !before.Mode().IsRegular() { // opening a named pipe would block
		return fmt.Errorf("save_json: %s is not a regular file", name)
	}
	file, err := root.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("save_json: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	opened, err := file.Stat()
	if err != nil {
		return fmt.Errorf("save_json: %w", err)
	}
	if now, err := root.Lstat(name); err != nil || !os.SameFile(opened, now) { // name may have been replaced by a link
		return fmt.Errorf("save_json: %s is not a regular file", name)
	}
	if _, err := file.Write(line); err != nil { // a single write, so that lines of several processes do not mix
		return fmt.Errorf("save_json: %w", err)
	}
	return nil
}
