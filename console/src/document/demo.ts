/** A workload that runs anywhere: on the S3 server inside Tidemark, in half a minute. */

export const demo = `# The demo: reads and writes on the S3 server inside Tidemark, every read verified. Half a minute.
name: demo
target: embedded
content: {verify: true}
stages:
  - init: {containers: 1-2}
  - prepare: {workers: 4, containers: 1-2, objects: 1-200, sizes: 16KiB}
  - name: main
    load:
      workers: 8
      warm_up: 3s
      for: 20s
      containers: 1-2
      operations:
        - get: {weight: 70, objects: 1-200}
        - put: {weight: 30, objects: 201-400, sizes: 16KiB}
  - cleanup: {workers: 4, containers: 1-2, objects: 1-400}
  - dispose: {containers: 1-2}
`;
