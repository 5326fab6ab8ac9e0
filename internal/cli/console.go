package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/wholefile"
	"github.com/spf13/cobra"
)

func (a *app) consoleCommand() *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Open the web console of the server",
		Long: `Opens the web console of "belay serve" in the browser, and logs in with your token: approvals, sessions, hooks, runs, jobs
and usage. Without --server it is the server on this machine, at serve.listen.`,
		Example: `  belay console
  belay --server https://belay.example.com console
  belay console --print`,
		Args: arguments(0, 0, "console takes flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.openConsole(cmd.Context(), show) },
	}
	cmd.Flags().BoolVar(&show, "print", false, "print the address with the token, and do not open a browser")
	return cmd
}

// openConsole opens the console, or prints its address.
func (a *app) openConsole(ctx context.Context, show bool) error {
	settings, err := a.settings()
	if err != nil {
		return err
	}
	if settings.Server == "" {
		settings.Server = "http://" + settings.Serve.Listen
	}
	token, from, err := tokenFor(settings)
	if err != nil {
		return err
	}
	c, err := client.New(settings.Server, token, nil)
	if err != nil {
		return usage("%s: %w", settings.From("server"), err)
	}
	if _, err := c.ReadSelf(ctx); err != nil {
		if refused := refused(err, from); !errors.Is(err, refused) {
			return refused
		}
		return &exitError{code: exitFailed, err: err, hint: "`belay serve` starts a server; serve.listen is its address"}
	}
	address, err := url.JoinPath(settings.Server, "login")
	if err != nil {
		return usage("%s: %w", settings.From("server"), err)
	}
	address += "#" + url.PathEscape(token) // a browser does not send this part
	if show {
		if _, err := fmt.Fprintln(a.out, address); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		return nil
	}
	dir := assembly.TokenDir(settings)
	if dir == "" {
		return usage("there is no directory for the user's settings: set HOME, or use --print")
	}
	if err := handOver(ctx, dir, address); err != nil {
		return &exitError{code: exitFailed, err: err, hint: fmt.Sprintf("open %s in a browser and paste the token from %s, or run `belay console --print`", settings.Server, from)}
	}
	a.remarkf("%s", a.onErr.dim("opened "+settings.Server))
	return nil
}

// browserPatience is how long a browser may take to load its first page.
const browserPatience = time.Minute

// handOver opens an address with a token in the browser, and returns when the browser has it.
// Other users of the machine can see the arguments of a program. So the browser gets the name of
// a file that only this user can read. The file leads to a page of this process, which leads to
// the address, once. So no token stays in the file.
func handOver(ctx context.Context, dir, address string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("open the console: %w", err)
	}
	path := "/" + rand.Text()
	taken := make(chan struct{})
	take := sync.OnceFunc(func() { close(taken) })
	server := &http.Server{ReadHeaderTimeout: browserPatience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, address, http.StatusSeeOther)
		take()
	})}
	go func() { _ = server.Serve(listener) }() // ends with Shutdown; its error says only that
	ctx, cancel := context.WithTimeout(ctx, browserPatience)
	defer cancel()
	file, err := writeOpener(dir, "http://"+listener.Addr().String()+path)
	if err == nil {
		err = openInBrowser(ctx, file)
	}
	if err == nil {
		select {
		case <-taken:
		case <-ctx.Done():
			err = fmt.Errorf("no browser has opened the page %s: %w", file, ctx.Err())
		}
	}
	if gone := os.Remove(file); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return errors.Join(err, server.Shutdown(context.WithoutCancel(ctx))) // waits until the answer is sent
}

// writeOpener writes a page that leads to an address.
func writeOpener(dir, address string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("open the console: %w", err)
	}
	file := filepath.Join(dir, "console.html")
	text := fmt.Sprintf("<!DOCTYPE html><meta charset=\"utf-8\"><title>Belay</title><meta http-equiv=\"refresh\" content=\"0; url=%[1]s\"><a href=\"%[1]s\">Open the console</a>\n", address)
	if err := wholefile.Write(file, []byte(text)); err != nil {
		return "", fmt.Errorf("open the console: %w", err)
	}
	return file, nil
}

// openInBrowser opens a file with the user's browser.
func openInBrowser(ctx context.Context, file string) error {
	var cmd *exec.Cmd
	switch runtime.GOOS {
	case "darwin":
		cmd = exec.CommandContext(ctx, "open", file) //nolint:gosec // the file is ours
	case "windows":
		cmd = exec.CommandContext(ctx, "rundll32", "url.dll,FileProtocolHandler", file) //nolint:gosec // the file is ours
	default:
		cmd = exec.CommandContext(ctx, "xdg-open", file) //nolint:gosec // the file is ours
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s cannot open a browser: %w", cmd.Args[0], err)
	}
	return nil
}
