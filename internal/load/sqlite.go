package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/sqlite"
)

// onSQLite calls f with a new store and an agent. It returns by how many bytes the store has grown.
func onSQLite(ctx context.Context, f func(store *sqlite.Store, agent *belay.Agent) error) (grown int64, err error) {
	err = inDirectory(func(dir string) error {
		path := filepath.Join(dir, "belay.db")
		store, err := sqlite.Open(ctx, path, nil)
		if err == nil {
			err = store.Close() // the log of SQLite is part of the file from here on
		}
		if err != nil {
			return err
		}
		empty, err := sizeOf(dir)
		if err != nil {
			return err
		}
		if store, err = sqlite.Open(ctx, path, nil); err != nil {
			return err
		}
		agent, err := newAgent(store, 0)
		if err == nil {
			err = errors.Join(f(store, agent), agent.Close(ctx))
		}
		if err := errors.Join(err, store.Close()); err != nil {
			return err
		}
		full, err := sizeOf(dir)
		grown = full - empty
		return err
	})
	return grown, err
}

// sizeOf returns the size of the files of a directory.
func sizeOf(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}

// rounds calls turn for each number below count, in as many goroutines as atOnce says. It stops early if ctx ends or a turn fails.
func rounds(ctx context.Context, count, atOnce int, turn func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	next := make(chan int)
	for range atOnce {
		running.Go(func() { // ends when next is closed
			for i := range next {
				if err := turn(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < count && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	running.Wait()
	return context.Cause(ctx)
}

// turnsOnSQLite measures turns of one process, with more and more sessions at once.
func turnsOnSQLite(ctx context.Context, out io.Writer, s *size) error {
	heading(out, "sessions at once", "turns a second", "median", "99 %", "CPU per turn", "growth per turn")
	for _, atOnce := range s.atOnce {
		var took []time.Duration
		var lasted, used time.Duration
		grown, err := onSQLite(ctx, func(_ *sqlite.Store, agent *belay.Agent) (err error) {
			start, cpu := time.Now(), cpuTime()
			all := make([][]time.Duration, atOnce)
			err = rounds(ctx, atOnce, atOnce, func(ctx context.Context, i int) error {
				session := agent.Session(fmt.Sprintf("s-%d", i))
				for n := 0; time.Since(start) < s.lasts; n++ {
					began := time.Now()
					if err := take(ctx, session); err != nil {
						return err
					}
					all[i] = append(all[i], time.Since(began))
				}
				return nil
			})
			lasted, used = time.Since(start), cpuTime()-cpu
			for _, some := range all {
				took = append(took, some...)
			}
			return err
		})
		if err != nil {
			return err
		}
		turns := time.Duration(len(took))
		row(out, atOnce, float64(turns)/lasted.Seconds(), quantile(took, 0.5), quantile(took, 0.99), used/turns, fmt.Sprintf("%.1f KB", float64(grown)/float64(turns)/1024))
	}
	return nil
}

// take runs a turn to its end.
func take(ctx context.Context, session *belay.Session) error {
	turn, err := session.Turn(ctx, "Please write a note about the tests.")
	if err == nil && turn.Text != sentences {
		err = fmt.Errorf("the turn ends with %q", turn.Text)
	}
	return err
}

// manySessions measures one turn in each of many sessions, the memory that they leave, and the list of the newest.
func manySessions(ctx context.Context, out io.Writer, s *size) error {
	heading(out, "sessions", "turns a second", "growth per session", "heap per session", "list of the newest 50")
	var lasted, listed time.Duration
	var heap int64
	grown, err := onSQLite(ctx, func(store *sqlite.Store, agent *belay.Agent) error {
		before := liveHeap()
		start := time.Now()
		if err := rounds(ctx, s.sessions, 64, func(ctx context.Context, i int) error {
			return take(ctx, agent.Session(fmt.Sprintf("s-%d", i)))
		}); err != nil {
			return err
		}
		lasted, heap = time.Since(start), liveHeap()-before
		start = time.Now()
		found := 0
		for _, err := range store.Sessions(ctx, belay.SessionFilter{}) {
			if err != nil {
				return err
			}
			if found++; found == 50 {
				break
			}
		}
		listed = time.Since(start)
		if want := min(50, s.sessions); found != want {
			return fmt.Errorf("the list has %d sessions, want %d", found, want)
		}
		return nil
	})
	if err != nil {
		return err
	}
	each := func(bytes int64) string { return fmt.Sprintf("%.1f KB", float64(bytes)/float64(s.sessions)/1024) }
	row(out, s.sessions, float64(s.sessions)/lasted.Seconds(), each(grown), each(heap), listed)
	return nil
}

// liveHeap returns the bytes that the garbage collector leaves.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // the first one may have begun before
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
