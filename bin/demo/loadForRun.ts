import { recordDemoEnd, recordDemoStage } from '../../db/installation/demoRuns.js';
import { OrgDb } from '../../db/orgDb.js';
import {
  DEMO_MESSAGE_CHARS_MAX,
  DEMO_RUN_ALIVE_SECONDS,
  DEMO_STAGE_CHARS_MAX,
} from '../../domain/installation/demoRuns.js';
import type { Config } from '../../platform/config.js';
import { withToolDatabase } from '../service/toolDatabase.js';
import type { Screen } from '../terminal/terminal.js';
import { bringDemo } from './demoRun.js';

/** Loads the demo through the API at `base` and records in the run how far it is and how it ends. */
export async function loadForRun(
  config: Config,
  { orgId, id }: { orgId: string; id: string },
  base: string,
): Promise<void> {
  await withToolDatabase(config, async (database) => {
    const orgDb = new OrgDb(database, orgId);
    const note = (stage?: string) =>
      recordDemoStage(orgDb, id, stage?.slice(0, DEMO_STAGE_CHARS_MAX)).catch(() => undefined);
    const life = setInterval(() => void note(), DEMO_RUN_ALIVE_SECONDS * 1_000);
    try {
      await note('Demo Labs');
      await bringDemo(
        config,
        base,
        screenOf((stage) => void note(stage)),
      );
      await recordDemoEnd(orgDb, id, null);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      await recordDemoEnd(orgDb, id, message.slice(0, DEMO_MESSAGE_CHARS_MAX) || 'no reason was given');
      throw error;
    } finally {
      clearInterval(life);
    }
  });
}

/** Names each step as it begins. */
function screenOf(note: (stage: string) => void): Screen {
  return {
    step(name, work) {
      note(name);
      return work;
    },
    note,
    warn: note,
    ready: () => undefined,
  };
}
