/**
 * A worker for the bare workflow only, in its own process and with the slots of the product's worker. Settings:
 * BENCH_BARE as JSON. Sends `ready` when it polls.
 */
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { processEnvironment } from '../../../platform/config.js';
import type { BareSettings } from './bareEngine.js';

const settings = JSON.parse(processEnvironment({}).BENCH_BARE ?? '') as BareSettings;
const silent = () => undefined;
const logger = { log: silent, trace: silent, debug: silent, info: silent, warn: silent, error: silent };
Runtime.install({ logger });
const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const { code } = await bundleWorkflowCode({
  workflowsPath: fileURLToPath(new URL(`./bareWorkflow.${extension}`, import.meta.url)),
  logger,
});
const connection = await NativeConnection.connect({ address: settings.address });
const worker = await Worker.create({
  connection,
  namespace: settings.namespace,
  taskQueue: settings.taskQueue,
  workflowBundle: { code },
  maxConcurrentWorkflowTaskExecutions: 40,
  maxCachedWorkflows: 500,
  workflowTaskPollerBehavior: { type: 'autoscaling', maximum: 10 },
});
process.send?.('ready');
await worker.run();
