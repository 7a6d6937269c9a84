import { type LoadPlan, runLoad } from './loadClient.js';

/** Runs the load client in its own process: executes each plan that its parent sends and answers with the result. */
process.on('message', (plan: LoadPlan) => {
  runLoad(plan).then(
    (result) => process.send?.(result),
    (error: unknown) => {
      process.stderr.write(`load client: ${error instanceof Error ? error.stack : String(error)}\n`);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit(0));
