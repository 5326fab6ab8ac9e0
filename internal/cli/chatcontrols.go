package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/toolbox"
)

// These limit what the chat offers and sends.
const (
	mostSessions   = 200
	mostFiles      = 20_000
	mostImages     = 8
	mostImageBytes = 5 << 20
)

// chatPlace is the session that a chat shows. Only one goroutine at a time changes it.
type chatPlace struct {
	w       *work
	id      string
	session *belay.Session
}

// chatControls returns what the commands of a chat do on this machine.
func (a *app) chatControls(at *chatPlace) chat.Controls {
	w := at.w
	c := chat.Controls{
		Open: at.open,
		Sessions: func(ctx context.Context) ([]chat.Choice, error) {
			return sessionChoices(ctx, &storeRecords{a, w.store})
		},
		Models:    func(context.Context) ([]chat.Choice, error) { return modelChoices(w.Settings) },
		Mode:      func(session string) string { return w.Floor.ModeOf(session).Name },
		SetMode:   w.Floor.SetMode,
		PassMode:  w.Floor.PassMode,
		Recall:    w.Floor.Recall,
		Window:    windows(w.Settings),
		Files:     func(ctx context.Context) ([]string, error) { return projectFiles(ctx, w.Settings.Project) },
		AddDir:    func(dir string) (string, error) { return addDir(w, dir) },
		Jobs:      func(session string) []chat.Job { return jobsOf(w.Background.List(session)) },
		JobOutput: w.Background.Output,
		StopJob:   w.Background.Stop,
		TooLarge: func(model string, image *belay.Media) string {
			return assembly.ImageTooLarge(w.Settings, model, image)
		},
		Clipboard: newClipboard(w.Settings.Environment).image,
		Attach:    func(text string) ([]belay.Part, []string) { return attachments(w.Settings.Project, text) },
	}
	for _, name := range []string{"plan", permit.Strict.Name, permit.Standard.Name, permit.Build.Name} {
		if mode, err := permit.ModeOf(name); err == nil {
			c.Modes = append(c.Modes, chat.Choice{ID: mode.Name, About: assembly.ModeMeans(mode)})
		}
	}
	at.addRewind(&c)
	return c
}

// open opens another session of the agent, and closes the session before it, so that another
// process can open that one.
func (p *chatPlace) open(ctx context.Context, id string) (chat.Session, error) { //nolint:ireturn // the chat calls it so
	if id == "" {
		id = inspect.NewSessionID(time.Now())
	} else {
		info, err := findSession(ctx, p.w.store, id)
		if err != nil {
			return nil, err
		}
		if name := info.State.Agent; name != "" && name != p.w.Agent.Name() {
			return nil, usage("session %s belongs to agent %s: quit, and open it with `belay chat --session %s`", info.ID, name, info.ID)
		}
		id = info.ID
	}
	if err := p.session.Close(ctx); err != nil {
		return nil, err
	}
	p.w.Floor.CopyMode(p.id, id) // the mode is the person's, not the session's
	p.id, p.session = id, p.w.Agent.Session(id)
	return p.session, nil
}

// addDir adds a directory, and says what that means.
func addDir(w *work, dir string) (string, error) {
	full, err := w.AddRoot(dir)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s counts like the project until you quit: the agent reads files there, and changes them if the mode allows changes. To keep it, set permit.roots in your own %s", full, config.Name), nil
}

// jobsOf describes commands in the background.
func jobsOf(all []toolbox.BackgroundCommand) []chat.Job {
	jobs := make([]chat.Job, len(all))
	for i := range all {
		c := &all[i]
		jobs[i] = chat.Job{ID: c.ID, Command: c.Command, Started: c.Started, Ended: c.Ended, End: fmt.Sprintf("exit code %d", c.ExitCode)}
		if c.Signal != "" {
			jobs[i].End = "ended by " + c.Signal
		}
	}
	return jobs
}

// sessionChoices lists the sessions that a person can open, the last changed first.
func sessionChoices(ctx context.Context, r records) ([]chat.Choice, error) {
	var all []chat.Choice
	now := time.Now()
	for s, err := range r.Sessions(ctx, belay.SessionFilter{}) {
		if err != nil {
			return all, err
		}
		if inspect.IsChild(s.ID) {
			continue
		}
		title := oneLine(s.Title)
		if title == "" {
			title = s.ID
		}
		all = append(all, chat.Choice{ID: s.ID, Name: title, About: strings.Join([]string{ago(now, s.Changed), s.State, s.ID}, " · ")})
		if len(all) == mostSessions {
			break
		}
	}
	return all, nil
}

// modelChoices lists the models of the providers that can be used.
func modelChoices(settings *config.Loaded) ([]chat.Choice, error) {
	found, err := inspect.ListModels(settings, nil)
	if err != nil {
		return nil, err
	}
	found.List(settings)
	all := []chat.Choice{{ID: "-", Name: "the agent's own", About: assembly.ModelName(settings)}}
	for i := range found.Providers {
		p := &found.Providers[i]
		if p.Status != inspect.Found {
			continue
		}
		for _, m := range p.Models {
			about := ""
			if m.Window > 0 {
				about = tokensOf(m.Window) + " tokens"
			}
			all = append(all, chat.Choice{ID: m.Name, About: about})
		}
	}
	return all, nil
}

// windows returns a function that finds the context window of a model by its name. It remembers
// what it has found.
func windows(settings *config.Loaded) func(model string) int {
	known := make(map[string]int)
	return func(model string) int {
		if n, ok := known[model]; ok {
			return n
		}
		n := 0
		if provider, name, ok := strings.Cut(model, "/"); ok {
			if p, err := settings.Provider(provider); err == nil {
				n = assembly.MakeModel(p, name, "").Info().Window
			}
		}
		known[model] = n
		return n
	}
}

// projectFiles lists the files of a project that its .gitignore files do not exclude.
func projectFiles(ctx context.Context, project string) ([]string, error) {
	root, err := os.OpenRoot(project)
	if err != nil {
		return nil, fmt.Errorf("list the files: %w", err)
	}
	defer func() { _ = root.Close() }() // only read
	return toolbox.Files(ctx, root, mostFiles)
}

// attachments returns the images that a message names by their paths, also with an @ before the
// path, as a file:// address or in quotes, as terminals paste dropped files.
func attachments(project, text string) (parts []belay.Part, said []string) {
	for _, word := range pathWords(text) {
		if !isImageName(word) || len(parts) == mostImages {
			continue
		}
		path := word
		if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(path, "~/") {
			path = filepath.Join(home, path[2:])
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(project, path)
		}
		part, err := readImage(path, word)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			said = append(said, fmt.Sprintf("%s is not attached: %v", word, err))
		default:
			parts = append(parts, part)
			said = append(said, "attached "+word)
		}
	}
	return parts, said
}

// pathWords splits a text into words, as a shell does with quotes and backslashes.
func pathWords(text string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	escaped := false
	end := func() {
		if w := strings.TrimPrefix(strings.TrimPrefix(word.String(), "@"), "file://"); w != "" {
			words = append(words, w)
		}
		word.Reset()
	}
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\'') && word.Len() == 0:
			quote = r
		case quote == 0 && (r == ' ' || r == '\n' || r == '\t'):
			end()
		default:
			word.WriteRune(r)
		}
	}
	end()
	return words
}

func isImageName(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp":
		return true
	default:
		return false
	}
}

// readImage reads an image. Its content decides which type it has.
func readImage(path, name string) (belay.Part, error) {
	info, err := os.Stat(path)
	if err != nil {
		return belay.Part{}, err
	}
	if !info.Mode().IsRegular() {
		return belay.Part{}, errors.New("it is not a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return belay.Part{}, err
	}
	defer func() { _ = f.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(f, mostImageBytes+1))
	if err != nil {
		return belay.Part{}, err
	}
	mime := http.DetectContentType(data)
	switch {
	case len(data) > mostImageBytes:
		return belay.Part{}, fmt.Errorf("it is larger than %d MB", mostImageBytes>>20)
	case !strings.HasPrefix(mime, "image/"):
		return belay.Part{}, fmt.Errorf("it is not an image, but %s", mime)
	}
	part := belay.Image(mime, data)
	part.Media.Name = filepath.Base(name)
	return part, nil
}

// serverControls returns what the commands of a chat do at a server. opened gets each new
// session.
func serverControls(c *serverClient, opened func(*serverSession) *serverSession) chat.Controls {
	return chat.Controls{
		Where:    "at a server: the server decides about it",
		Sessions: func(ctx context.Context) ([]chat.Choice, error) { return sessionChoices(ctx, &serverRecords{c}) },
		Open: func(ctx context.Context, id string) (chat.Session, error) {
			var found api.Session
			var err error
			if id == "" {
				found, err = c.CreateSession(ctx, api.CreateSession{})
			} else {
				found, err = findRecord(ctx, &serverRecords{c}, id)
			}
			if err != nil {
				return nil, err
			}
			return opened(&serverSession{c: c, id: found.ID, usage: found.Usage}), nil
		},
	}
}
