// Package dialect has what Belay knows about other coding agents: their names, and their
// names and inputs of tools. Packages below this one read the hook files of one vendor
// each.
//
// Experimental: the packages for other agents follow contracts that their vendors change at any
// time.
//
// # Usage
//
// Every agent has a tool that changes a file, but each agent has another name for the tool
// and for its inputs. [Ours] turns a call of another agent's tool into calls of Belay's
// tools, so that one guard covers all spellings. [Vendor.Theirs] turns a call of Belay's
// tool into the vendor's form, so that a hook that was written for the vendor can read it.
//
// # Concurrency
//
// All functions can be called from several goroutines.
//
// # Errors
//
// An error of [Ours] means that a guard cannot see what the call does. The caller must not
// let such a call pass.
//
// # Testing
//
// The functions need no agent and no files: give them a [Call], and compare the calls that
// they return.
package dialect
