package vendorhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
)

// Transcripts writes conversations as files, in the form that hooks of Claude Code read:
// one JSON object for each message. A file is written when a hook may read it, and each
// time only the new messages are added.
type Transcripts struct {
	dir     string
	project string
	read    func(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error]

	mu   sync.Mutex
	last map[string]int64 // the number of the last message in each file, by session
}

// oldTranscript is the age after which a file that another process left is removed.
const oldTranscript = 7 * 24 * time.Hour

// NewTranscripts returns a writer of files in a directory. Only the user can read them. The
// function read reads the messages of a session, as [belay.Store] does.
func NewTranscripts(dir, project string, read func(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error]) *Transcripts {
	return &Transcripts{dir: dir, project: project, read: read, last: make(map[string]int64)}
}

// File writes the conversation of a session and returns the path of its file.
func (t *Transcripts) File(ctx context.Context, session string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := sha256.Sum256([]byte(session))
	path := filepath.Join(t.dir, hex.EncodeToString(sum[:8])+".jsonl")
	last, begun := t.last[session]
	if !begun {
		if err := os.MkdirAll(t.dir, 0o700); err != nil {
			return "", fmt.Errorf("transcript: %w", err)
		}
		t.prune()
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("transcript: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("transcript: %w", err)
	}
	t.last[session] = last
	out := json.NewEncoder(f)
	out.SetEscapeHTML(false)
	for m, err := range t.read(ctx, session, last) {
		if errors.Is(err, belay.ErrNotFound) { // the session has no messages yet
			break
		}
		if err == nil {
			err = t.write(out, session, m)
		}
		if err != nil {
			return "", fmt.Errorf("transcript: %w", errors.Join(err, f.Close()))
		}
		t.last[session] = m.Seq
	}
	if err := f.Close(); err != nil {
		return "", fmt.Errorf("transcript: %w", err)
	}
	return path, nil
}

// write adds a message to a file.
func (t *Transcripts) write(out *json.Encoder, session string, m *belay.Message) error {
	content := []map[string]any{}
	for _, p := range m.Parts {
		switch {
		case p.Call != nil:
			call, err := dialect.ClaudeCode.Theirs(dialect.Call{Tool: p.Call.Tool, Input: p.Call.Input}, t.project, "")
			if err != nil { // the model sent no JSON object
				call = dialect.Call{Tool: p.Call.Tool, Input: json.RawMessage("{}")}
			}
			content = append(content, map[string]any{"type": "tool_use", "id": p.Call.ID, "name": call.Tool, "input": call.Input})
		case p.Result != nil:
			content = append(content, map[string]any{"type": "tool_result", "tool_use_id": p.Result.Call, "content": p.Result.Text, "is_error": p.Result.IsError})
		case p.Type == belay.PartText && p.Text != "":
			content = append(content, map[string]any{"type": "text", "text": p.Text})
		}
	}
	if len(content) == 0 {
		return nil
	}
	body := map[string]any{"role": m.Role, "content": content}
	if m.Kind == belay.KindUser && len(content) == 1 && content[0]["type"] == "text" {
		body["content"] = content[0]["text"] // a prompt is a text in Claude Code
	}
	if m.Role == belay.RoleAssistant {
		body["model"] = m.Model
		if m.Usage != nil {
			body["usage"] = map[string]any{"input_tokens": m.Usage.In, "output_tokens": m.Usage.Out}
		}
	}
	err := out.Encode(map[string]any{
		"type": m.Role, "message": body, "sessionId": session, "uuid": fmt.Sprintf("%s-%d", session, m.Seq), "timestamp": m.Time.UTC().Format(time.RFC3339Nano), "cwd": t.project, "isSidechain": false,
	})
	if err != nil {
		return fmt.Errorf("write the transcript: %w", err)
	}
	return nil
}

// prune removes old files that other processes left.
func (t *Transcripts) prune() {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && filepath.Ext(e.Name()) == ".jsonl" && time.Since(info.ModTime()) > oldTranscript {
			_ = os.Remove(filepath.Join(t.dir, e.Name())) // the next process tries again
		}
	}
}

// Close removes the files.
func (t *Transcripts) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var problems []error
	for session := range t.last {
		sum := sha256.Sum256([]byte(session))
		if err := os.Remove(filepath.Join(t.dir, hex.EncodeToString(sum[:8])+".jsonl")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, fmt.Errorf("transcript: %w", err))
		}
	}
	clear(t.last)
	return errors.Join(problems...)
}
