// Package cluster tests that the contract of a worker with its scheduler holds on real ones: a Kubernetes control
// plane, of which etcd, kube-apiserver and kube-controller-manager are the released ones, and Slurm's slurmctld and
// slurmd, all on the loopback interface. make test-cluster builds them and runs the tests, as root; go test alone skips
// them.
//
// Only kubelet, with kube-scheduler, is replaced by a program of the tests that runs the containers of pods as
// processes in a root folder like that of the image of a release. See the type node for what it does not honour.
package cluster
