// Package demo is the guided tour of `belay demo`: hooks on the real phases of
// a turn collect, rewrite, block, time out, explain themselves, and leave a
// timeline. It needs no key and no network.
package demo
