// Package inspect describes sessions, approvals, hooks, skills, agents, models, trust and
// workers as plain values with JSON names. The command line prints these values, and package
// serve sends them, so both show the same.
package inspect
