import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { clientDocument, clientHeader } from '../../lab/web/writeClient.js';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';

it("the dashboard's client is generated from today's API; npm run web:client writes it", () => {
  const [header] = readFileSync(join(PROJECT_ROOT, 'web/src/api/schema.d.ts'), 'utf8').split('\n', 1);
  expect(header).toBe(clientHeader(clientDocument()));
});
