// Package looptest tests the behaviour of an agent from the outside: whole turns with
// scripted models, tools, hooks, approvals, stores and failures. The package contains
// only tests. Tests of a single function, and examples, are in the packages that they
// belong to.
package looptest
