import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ENDPOINTS } from '../../api/app.js';
import { buildOpenApi } from '../../api/openapi.js';
import { runMain } from '../../platform/processMain.js';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';

interface Answer {
  headers?: unknown;
  content?: Record<string, unknown>;
}
interface Operation {
  responses?: Record<string, Answer>;
}

/**
 * The API's document as text, without what an installation sets and without what the dashboard does not read by type:
 * headers, problems (one type serves them all) and other formats of an answer that has a JSON form.
 */
export function clientDocument(): string {
  const document = buildOpenApi(ENDPOINTS, {} as Parameters<typeof buildOpenApi>[1]) as {
    paths: Record<string, Record<string, Operation>>;
  };
  for (const path of Object.values(document.paths)) {
    for (const { responses = {} } of Object.values(path)) {
      for (const [status, answer] of Object.entries(responses)) {
        if (Number(status) >= 400) {
          delete responses[status];
          responses.default = answer;
        }
        delete answer.headers;
        const json = answer.content?.['application/json'];
        if (json) answer.content = { 'application/json': json };
      }
    }
  }
  return JSON.stringify(document);
}

/** First line of web/src/api/schema.d.ts: names the document from which the types were generated. */
export function clientHeader(document: string): string {
  return `// Generated from /openapi.json (sha256 ${createHash('sha256').update(document).digest('hex')}) by npm run web:client.`;
}

/** Writes the types of the dashboard's client from the API's own document. */
function writeClient(): void {
  const generator = join(PROJECT_ROOT, 'tools/webClient');
  if (!existsSync(join(generator, 'node_modules')))
    execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
      cwd: generator,
      stdio: 'inherit',
    });
  const folder = mkdtempSync(join(tmpdir(), 'trueup-client-'));
  try {
    const document = clientDocument();
    const source = join(folder, 'openapi.json');
    const output = join(folder, 'schema.d.ts');
    writeFileSync(source, document);
    execFileSync(
      process.execPath,
      [join(generator, 'node_modules/openapi-typescript/bin/cli.js'), source, '--output', output],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    writeFileSync(
      join(PROJECT_ROOT, 'web/src/api/schema.d.ts'),
      `${clientHeader(document)}\n${readFileSync(output, 'utf8')}`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[1]?.match(/writeClient\.[jt]s$/)) await runMain(async () => writeClient());
