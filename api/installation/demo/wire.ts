import { z } from 'zod';
import type { DemoRun } from '../../../db/installation/demoRuns.js';
import { publicId } from '../../../domain/ids.js';
import { DEMO_RUN_STATUSES } from '../../../domain/installation/demoRuns.js';
import { isoFromMicros, isoOrNull } from '../../../domain/period.js';

export const DEMO_PATH = '/api/v1/demo';

export const demoRunParams = z.object({
  id: z.string().meta({ example: 'run_0199f3a2c4d57e3a8f00112233445566' }),
});

export const demoRunSchema = z
  .strictObject({
    run_id: z.string(),
    status: z.enum(DEMO_RUN_STATUSES),
    stage: z.string().meta({ description: 'What it is doing' }),
    result: z
      .strictObject({
        organization: z.strictObject({ id: z.string(), name: z.string() }),
        sign_in_link: z.string().meta({
          description: 'Signs one browser in to the demo, once, within ten minutes; another one at each read',
        }),
      })
      .nullable()
      .meta({ description: 'null: it has not succeeded, or the demo was removed since' }),
    error: z.strictObject({ message: z.string() }).nullable(),
    created_at: z.string(),
    started_at: z.string().nullable(),
    finished_at: z.string().nullable(),
    status_url: z.string(),
  })
  .meta({ id: 'DemoRun' });

export const demoSchema = z
  .strictObject({
    organization: z
      .strictObject({ id: z.string(), name: z.string() })
      .nullable()
      .meta({ description: 'null: there is no demo. It exists from the beginning of a load' }),
    run: demoRunSchema.nullable().meta({
      description: 'The newest load, without its link; null: this organization has started none',
    }),
  })
  .meta({ id: 'Demo' });

export function presentDemo(
  demo: { id: string; name: string } | undefined,
  run: DemoRun | undefined,
): z.output<typeof demoSchema> {
  return {
    organization: demo ? { id: publicId('org', demo.id), name: demo.name } : null,
    run: run ? presentDemoRun(run) : null,
  };
}

export function presentDemoRun(
  run: DemoRun,
  loaded?: { demo: { id: string; name: string }; link: string } | undefined,
): z.output<typeof demoRunSchema> {
  const id = publicId('run', run.id);
  return {
    run_id: id,
    status: run.status,
    stage: run.finishedAtMicros === null ? run.stage : run.status,
    result: loaded
      ? {
          organization: { id: publicId('org', loaded.demo.id), name: loaded.demo.name },
          sign_in_link: loaded.link,
        }
      : null,
    error: run.errorMessage === null ? null : { message: run.errorMessage },
    created_at: isoFromMicros(run.createdAtMicros),
    started_at: isoOrNull(run.startedAtMicros),
    finished_at: isoOrNull(run.finishedAtMicros),
    status_url: `${DEMO_PATH}/runs/${id}`,
  };
}
