package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/dialect/guard"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/warmhook"
	"github.com/spf13/cobra"
)

const (
	workerIdle    = 5 * time.Minute        // the worker ends after this time without an event
	workerLook    = time.Second            // how often the worker checks whether it is still of use
	workerBeat    = 200 * time.Millisecond // how often the worker tells the command that it still works
	workerEngines = 4                      // engines for different environments
)

// startWorker starts a worker for the next events, and does not wait for it. Errors do not
// matter: without a worker, the command only needs more time.
func startWorker(dir string) {
	self, err := os.Executable()
	if err != nil {
		return
	}
	if _, err := warmhook.Socket(dir); err != nil {
		return
	}
	cmd := &exec.Cmd{Path: self, Args: []string{os.Args[0], "hook", "worker"}, Dir: dir, SysProcAttr: detached()}
	if cmd.Start() == nil {
		_ = cmd.Process.Release()
	}
}

// hookWorkerCommand is the worker process. Only startWorker runs it.
func (a *app) hookWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "worker",
		Short:  "Answer the events of \"belay hook\" in this directory, until none come for some minutes",
		Hidden: true,
		Args:   arguments(0, 0, "worker takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := os.Getwd()
			if err != nil {
				return err
			}
			return (&hookWorker{dir: dir, engines: make(map[string]*warmEngine)}).serve(cmd.Context())
		},
	}
}

// hookWorker answers the events of one directory. It keeps engines open.
type hookWorker struct {
	dir string

	mu      sync.Mutex
	engines map[string]*warmEngine // by the hash of the environment
	order   []string               // keys of engines, the oldest first
	busy    int                    // events that are being answered
	last    time.Time              // when the last answer ended
}

// warmEngine is an engine that is kept open.
type warmEngine struct {
	*assembly.Guarding

	settings *config.Loaded
	stamp    string
	inUse    sync.WaitGroup
}

// serve listens until no event comes for some minutes, or until ctx ends.
func (w *hookWorker) serve(ctx context.Context) error {
	path, err := warmhook.Socket(w.dir)
	if err != nil {
		return err
	}
	listener, err := listenAt(path)
	if err != nil {
		return err
	}
	mine, err := os.Lstat(path)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	w.last = time.Now()
	var answering sync.WaitGroup
	for w.wanted(ctx, path, mine) {
		_ = listener.SetDeadline(time.Now().Add(workerLook)) // Accept reports the error
		conn, err := listener.AcceptUnix()
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				continue
			}
			break
		}
		answering.Go(func() { w.answer(ctx, conn) })
	}
	if now, err := os.Lstat(path); err == nil && os.SameFile(now, mine) {
		_ = os.Remove(path)
	}
	err = listener.Close()
	answering.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.engines {
		err = errors.Join(err, e.Close(ctx))
	}
	return err
}

// listenAt listens at a socket that only this user can use. It replaces the socket of a
// worker that has ended.
func listenAt(path string) (*net.UnixListener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of the socket: %w", err)
	}
	if err := warmhook.CheckPlace(); err != nil {
		return nil, err
	}
	own := fmt.Sprintf("%s.%d", path, os.Getpid())
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: own, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	listener.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(own, 0o600), os.Rename(own, path)); err != nil {
		return nil, errors.Join(err, listener.Close(), os.Remove(own))
	}
	return listener, nil
}

// wanted reports whether the worker should go on: it is not idle, its directory exists, no
// other worker has replaced its socket, and the program file has not changed. Nobody would ask
// the worker of an older program, and a newer program may need the store for itself.
func (w *hookWorker) wanted(ctx context.Context, path string, mine os.FileInfo) bool {
	w.mu.Lock()
	idle := w.busy == 0 && time.Since(w.last) > workerIdle
	w.mu.Unlock()
	if idle || ctx.Err() != nil {
		return false
	}
	if _, err := os.Stat(w.dir); err != nil {
		return false
	}
	if own, err := warmhook.Socket(w.dir); err != nil || own != path {
		return false
	}
	now, err := os.Lstat(path)
	return err == nil && os.SameFile(now, mine)
}

// answer answers one event. If something is odd, it closes the connection, and the command
// answers by itself.
func (w *hookWorker) answer(ctx context.Context, conn *net.UnixConn) {
	defer func() { _ = conn.Close() }() // the command notices a lost answer
	if !fromUser(conn) {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second)) // reading reports the error
	r, err := warmhook.ReadRequest(conn)
	if err != nil || r.Dir != w.dir {
		return
	}
	w.mu.Lock()
	w.busy++
	w.mu.Unlock()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() { // ends when done is closed
		defer close(ended)
		tick := time.NewTicker(workerBeat)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				_, _ = conn.Write(warmhook.Alive()) // if the command is gone, nobody waits
			}
		}
	}()
	out := w.ask(ctx, r)
	close(done)
	<-ended
	reply := warmhook.Reply{Stdout: out.Stdout, Stderr: out.Stderr, Code: out.Code}
	_, _ = conn.Write(reply.Encode()) // the command notices a lost answer
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	w.last = time.Now()
}

// fromUser reports whether the other process belongs to the same user.
func fromUser(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	refused := errors.New("not checked")
	if err := raw.Control(func(fd uintptr) { refused = warmhook.CheckClient(int(fd)) }); err != nil {
		return false
	}
	return refused == nil
}

// ask asks the engine for the environment of the request.
func (w *hookWorker) ask(ctx context.Context, r *warmhook.Request) guard.Output {
	request := guard.Request{Agent: dialect.Vendor(r.Agent), Event: r.Event, Stdin: r.Stdin}
	e, err := w.engine(ctx, r)
	if err != nil {
		return guard.Refuse(request, err)
	}
	defer e.inUse.Done()
	request.Dir = e.settings.Project
	return answerInTime(request, func() guard.Output { return guard.Answer(ctx, e.Engine, request) })
}

// engine returns the engine for a request. It makes a new one if settings, hooks or their
// permissions have changed. The caller must call inUse.Done.
func (w *hookWorker) engine(ctx context.Context, r *warmhook.Request) (*warmEngine, error) {
	key := environmentKey(r.Environ)
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.engines[key]; e != nil {
		if e.stamp == stampOf(e.settings, w.dir) && !e.Changed() {
			e.inUse.Add(1)
			return e, nil
		}
		w.drop(ctx, key)
	}
	one := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, dir: w.dir, environ: r.Environ, width: plainWidth}
	settings, err := one.settings()
	if err != nil {
		return nil, err
	}
	e := &warmEngine{settings: settings, stamp: stampOf(settings, w.dir)}
	if e.Guarding, err = one.assembler().Guard(ctx, settings); err != nil {
		return nil, err
	}
	for len(w.order) >= workerEngines {
		w.drop(ctx, w.order[0])
	}
	w.engines[key], w.order = e, append(w.order, key)
	e.inUse.Add(1)
	return e, nil
}

// drop removes an engine, and closes it when its last answer has ended. The caller holds
// w.mu.
func (w *hookWorker) drop(ctx context.Context, key string) {
	e := w.engines[key]
	delete(w.engines, key)
	w.order = slices.DeleteFunc(w.order, func(k string) bool { return k == key })
	go func() { // ends when the last answer has ended
		e.inUse.Wait()
		_ = e.Close(context.WithoutCancel(ctx)) // nothing uses the engine any more
	}()
}

// environmentKey returns a hash of the environment, without variables that shells change
// all the time.
func environmentKey(environ []string) string {
	var kept []string
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if !slices.Contains([]string{"_", "PWD", "OLDPWD", "SHLVL", "COLUMNS", "LINES"}, name) {
			kept = append(kept, v)
		}
	}
	slices.Sort(kept)
	sum := sha256.Sum256([]byte(strings.Join(kept, "\x00")))
	return string(sum[:])
}

// stampOf returns a text that changes when a file with settings changes, appears or
// disappears, or when another directory becomes the project.
func stampOf(s *config.Loaded, dir string) string {
	files := []string{filepath.Join(s.SystemDir, config.Name), filepath.Join(s.UserDir, config.Name), filepath.Join(s.UserDir, "spaces.json"), s.SystemFile, s.UserFile, s.ProjectFile}
	for _, place := range []string{s.SystemDir, s.UserDir} { // hooks of the machine and the user may appear
		files = append(files, filepath.Join(place, "hooks"))
	}
	for at := dir; ; at = filepath.Dir(at) {
		files = append(files, filepath.Join(at, config.Name), filepath.Join(at, ".belay", "hooks"))
		if at == filepath.Dir(at) {
			break
		}
	}
	var b strings.Builder
	for _, file := range files {
		info, err := os.Stat(file)
		switch {
		case err != nil:
			b.WriteString("- ")
		case info.IsDir():
			b.WriteString("d ")
		default:
			fmt.Fprintf(&b, "%d/%d ", info.ModTime().UnixNano(), info.Size())
		}
	}
	return b.String()
}
