import { activityInfo } from '@temporalio/activity';
import { WALK_HOOK } from './recordWalks.js';

/** The product files whose functions were called, in the order of their first call. */
export type Walk = string[];

type Hook = (file: string) => void;
const place = globalThis as unknown as Record<string, Hook | undefined>;

/** The files that `work` calls, in the order of their first call. Other work of the process counts too. */
export async function recordWalk(work: () => Promise<unknown>): Promise<Walk> {
  const files = new Set<string>();
  place[WALK_HOOK] = (file) => {
    // Workflows run in a sandbox of their own: the file is known by the activity that the workflow calls.
    const workflow = file.startsWith('activities/') ? findWorkflow() : undefined;
    if (workflow !== undefined) files.add(`workflows/${workflow}.ts`);
    files.add(file);
  };
  try {
    await work();
  } finally {
    delete place[WALK_HOOK];
  }
  return [...files];
}

/** The walks without the files that all of them have in common, which are a walk of their own: `every request`. */
export function withoutPipeline(walks: Record<string, Walk>): Record<string, Walk> {
  const all = Object.values(walks);
  const common = (all[0] ?? []).filter((file) => all.every((walk) => walk.includes(file)));
  const apart = Object.entries(walks).map(([name, walk]) => [
    name,
    walk.filter((file) => !common.includes(file)),
  ]);
  return { 'every request': common, ...Object.fromEntries(apart) };
}

/** The workflow that has called the running activity; undefined outside of one. */
function findWorkflow(): string | undefined {
  try {
    return activityInfo().workflowType;
  } catch {
    return undefined;
  }
}
