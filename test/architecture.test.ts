import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { houseFigures, isMigration } from '../lab/house/figures.js';
import {
  type Import,
  importsOf,
  type Room,
  readSources,
  type SourceFile,
  targetOf,
} from '../lab/house/readHouse.js';

const ROOT = path.resolve(import.meta.dirname, '..');
const SOURCES = readSources(ROOT);
const IMPORTS = SOURCES.flatMap(importsOf);
const PRODUCT = SOURCES.filter((source) => source.room !== 'lab');

const FILE_LINES_MAX = 500;
const FOLDER_FILES_MAX = 20;
const HANDLER_LINES_MAX = 12;

/** The package that explains bills; its index is its door. */
const ENGINE = 'domain/reconciliation/engine/';
const ENGINE_FILES_MAX = 50;
const ENGINE_LINES_MAX = 9_500;

/** One subject has one name in every layer. */
const SUBJECTS = [
  'events',
  'usage',
  'pricing',
  'billing',
  'reconciliation',
  'claims',
  'policies',
  'invoices',
  'reports',
  'access',
  'webhooks',
  'runs',
  'installation',
];
/** Top-level folders whose subfolders are subjects, and their other subfolders. */
const SUBJECT_ROOMS: Record<string, string[]> = {
  domain: [],
  usecases: [],
  db: ['migrations'],
  api: ['pipeline', 'limits', 'examples', 'mcp'],
};

/**
 * The allowed imports of each top-level folder: by value, and further ones as types. `bin`, `lab` and `test` may import
 * everything.
 */
const ALLOWED: Partial<Record<Room, { values: string[]; types: string[] }>> = {
  domain: { values: ['domain'], types: [] },
  usecases: { values: ['usecases', 'domain', 'db', 'platform', 'workflows/contract'], types: ['adapters'] },
  workflows: { values: ['domain', 'workflows'], types: ['activities'] },
  activities: {
    values: ['activities', 'usecases', 'domain', 'platform', 'workflows/contract'],
    types: ['adapters'],
  },
  dispatch: {
    values: ['dispatch', 'usecases', 'domain', 'platform', 'workflows/contract'],
    types: ['adapters'],
  },
  db: { values: ['domain', 'db'], types: [] },
  adapters: { values: ['adapters', 'domain', 'workflows/contract', 'platform'], types: [] },
  api: { values: ['api', 'usecases', 'domain', 'platform'], types: ['adapters', 'workflows/contract', 'db'] },
  platform: { values: ['platform'], types: [] },
  web: { values: ['web'], types: [] },
  sdk: { values: ['sdk/js', 'sdk/wheel'], types: [] },
};
/** Functions of db that the API may call itself: they read. */
const READS = /^(find|get|list|stream|count)[A-Z]/;

/** Libraries that run in the browser. */
const WEB_PACKAGES =
  /^(?:react|react-dom\/client|react-aria-components|@tanstack\/react-query|recharts|wouter|openapi-fetch|openapi-react-query)$/;

/** Packages that a room may use; rooms that are not named may use any dependency of the project. */
const PACKAGES: Partial<Record<Room, (file: string, specifier: string) => boolean>> = {
  domain: (file, specifier) =>
    (specifier === 're2js' && file.startsWith('domain/policies/')) ||
    (specifier === 'node:crypto' && file.startsWith('domain/events/')),
  web: (file, specifier) =>
    file === 'web/vite.config.ts' || WEB_PACKAGES.test(specifier) || specifier.endsWith('.css'),
  // The published packages depend on nothing; Node's modules are used where the runtime has them.
  sdk: (file, specifier) =>
    specifier.startsWith('node:') && /\/(?:platformNode|spool)\.ts$|\/build\.mjs$|^sdk\/wheel\//.test(file),
  workflows: (_file, specifier) => specifier === '@temporalio/workflow' || specifier === '@temporalio/common',
};

/** The writers of invoices share nothing but a type, not even the library. */
const GENERATOR_PACKAGES: Record<string, string> = { invoicesFirst: 'pdfkit', invoicesSecond: 'pdf-lib' };

/** Generators that share no code with the others. */
const SEPARATE_GENERATORS: ReadonlySet<string> = new Set([...Object.keys(GENERATOR_PACKAGES), 'third']);

/** A string that begins as a statement. */
const SQL_TEXT =
  /['"`]\s*(?:select\s|with \w+ as|insert into |update \w+ (?:\w+ )?set |delete from |lock table |(?:set local|reset) role|(?:create|alter|drop) (?:table|role|index|schema|database) )/;
/** A backup reads and writes the whole cluster independent of its tables; the embedded server creates its database. */
const SQL_PLACES = /^(?:usecases\/installation\/backup|platform\/embedded)\//;

function isWithin(place: string, allowed: readonly string[]): boolean {
  return allowed.some((room) => place === room || place.startsWith(`${room}/`));
}

/** Why an import breaks the rules; undefined where it keeps them. */
function breach(item: Import): string | undefined {
  const rule = ALLOWED[item.room];
  if (!rule) return undefined;
  const place = targetOf(item);
  if (place === undefined) {
    const mayUse = PACKAGES[item.room];
    return mayUse && !mayUse(item.file, item.specifier)
      ? `${item.file} uses the package ${item.specifier}`
      : undefined;
  }
  if (isWithin(place, rule.values) || (item.isTypeOnly && isWithin(place, rule.types))) return undefined;
  if (item.room === 'api' && isWithin(place, ['db'])) {
    const writes = item.values.filter((name) => !READS.test(name));
    return writes.length > 0 ? `${item.file} imports ${writes.join(', ')} of ${place}` : undefined;
  }
  return `${item.file} imports ${place}${item.isTypeOnly ? ' (types)' : ''}`;
}

function parse(file: string, text: string): Import[] {
  return importsOf({ path: file, room: file.split('/')[0] as Room, text });
}

describe('the import rules', () => {
  it('are checked on every room', () => {
    expect(IMPORTS.length).toBeGreaterThan(1_000);
    expect(new Set(IMPORTS.map((item) => item.room)).size).toBeGreaterThanOrEqual(11);
  });

  it('hold in every file', () => {
    expect(IMPORTS.map(breach).filter((text) => text !== undefined)).toEqual([]);
  });

  it('refuse what they forbid', () => {
    const refused = [
      ...parse('domain/x.ts', "import { OrgDb } from '../db/orgDb.js';\nimport fs from 'node:fs';"),
      ...parse('api/x.ts', "import { findClaim, insertClaim } from '../db/claims/claims.js';"),
      ...parse('activities/x.ts', "import { findClaim } from '../db/claims/claims.js';"),
    ];
    expect(refused.map(breach)).toEqual([
      'domain/x.ts imports db/orgDb',
      'domain/x.ts uses the package node:fs',
      'api/x.ts imports insertClaim of db/claims/claims',
      'activities/x.ts imports db/claims/claims',
    ]);
    const allowed = [
      ...parse('api/x.ts', "import type { Orchestrator } from '../adapters/orchestrator.js';"),
      ...parse('api/x.ts', "import { findClaim, type StoredClaim } from '../db/claims/claims.js';"),
    ];
    expect(allowed.map(breach)).toEqual([undefined, undefined]);
  });

  it('leave no import cycle by value', () => {
    expect(houseFigures(SOURCES).cycles).toEqual([]);
  });

  it('keep node modules out of everything that a workflow reaches', () => {
    const byFile = new Map<string, Import[]>();
    for (const item of IMPORTS) byFile.set(item.file, [...(byFile.get(item.file) ?? []), item]);
    const seen = new Set<string>();
    const queue = [...byFile.keys()].filter((file) => file.startsWith('workflows/'));
    for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
      if (seen.has(file)) continue;
      seen.add(file);
      for (const item of byFile.get(file) ?? []) {
        if (item.isTypeOnly) continue;
        expect(item.specifier, `${file} is reached by a workflow`).not.toMatch(/^node:/);
        const target = targetOf(item);
        if (target !== undefined) queue.push(`${target}.ts`);
      }
    }
    expect(seen.size).toBeGreaterThan(0);
  });

  it('open one door to the engine, and none beside it', () => {
    const within = (file: string) => file.startsWith(ENGINE);
    const past = IMPORTS.filter((item) => {
      const target = targetOf(item);
      return target !== undefined && within(target) && !within(item.file) && target !== `${ENGINE}index`;
    });
    expect(past.map((item) => `${item.file} imports ${item.specifier}`)).toEqual([]);
  });

  it('keep the bill generators apart from the product that they judge', () => {
    const generators = IMPORTS.filter((item) => item.file.startsWith('lab/generators/'));
    const folder = (item: Import) => item.file.split('/')[2] ?? '';
    expect(generators.length).toBeGreaterThan(10);
    const foreign = generators.filter((item) => {
      const target = targetOf(item);
      return target === undefined
        ? !item.specifier.startsWith('node:') && GENERATOR_PACKAGES[folder(item)] !== item.specifier
        : !isWithin(target, ['lab/generators']);
    });
    expect(foreign.map((item) => `${item.file} imports ${item.specifier}`)).toEqual([]);
    const shared = generators.filter((item) => {
      const own = `lab/generators/${folder(item)}`;
      const target = targetOf(item) ?? own;
      return SEPARATE_GENERATORS.has(folder(item)) && !isWithin(target, [own]) && !item.isTypeOnly;
    });
    expect(shared.map((item) => `${item.file} imports ${item.specifier}`)).toEqual([]);
    const users = IMPORTS.filter((item) => isWithin(targetOf(item) ?? '', ['lab/generators']));
    expect(users.filter((item) => item.room !== 'lab').map((item) => item.file)).toEqual([]);
  });
});

describe('the rooms', () => {
  it.each(Object.entries(SUBJECT_ROOMS))('%s has one folder for each of its subjects', (room, others) => {
    const within = PRODUCT.filter((source) => source.room === room).map((source) => source.path.split('/'));
    const folders = [...new Set(within.filter((parts) => parts.length > 2).map(([, folder = '']) => folder))];
    expect(folders.filter((name) => !SUBJECTS.includes(name) && !others.includes(name))).toEqual([]);
  });

  it('web has one folder of screens for each of its subjects', () => {
    const folders = PRODUCT.flatMap(({ path: file }) => /^web\/src\/screens\/(\w+)\//.exec(file)?.[1] ?? []);
    expect(folders.length).toBeGreaterThan(0);
    // The overview shows figures of several subjects.
    expect([...new Set(folders)].filter((name) => name !== 'overview' && !SUBJECTS.includes(name))).toEqual(
      [],
    );
  });

  it('open transactions in usecases alone', () => {
    const openers = PRODUCT.filter(
      ({ room, path: file, text }) =>
        room !== 'usecases' && file !== 'db/orgDb.ts' && !isMigration(file) && /\.transaction\(/.test(text),
    );
    expect(openers.map((source) => source.path)).toEqual([]);
  });

  it('keep SQL in db, backups and the embedded server aside', () => {
    const foreign = PRODUCT.filter(
      ({ room, path: file, text }) => room !== 'db' && !SQL_PLACES.test(file) && SQL_TEXT.test(text),
    );
    expect(foreign.map((source) => source.path)).toEqual([]);
    for (const text of [
      "rows('select 1')",
      '`\nwith a as (select 1)',
      '"update x set y = 1"',
      "'delete from x'",
    ])
      expect(SQL_TEXT.test(text), text).toBe(true);
  });

  it('read the environment in platform/config.ts alone', () => {
    const readers = PRODUCT.filter(
      ({ path: file, text }) => file.endsWith('.ts') && /\bprocess\.env\b/.test(text),
    );
    // The published package reads the environment of the application.
    expect(readers.map((source) => source.path)).toEqual([
      'platform/config.ts',
      'sdk/js/src/platformNode.ts',
    ]);
  });

  it('send requests from these files alone; to addresses that users set, from safeFetch alone', () => {
    const senders = [
      'adapters/billing/azureTokens.ts',
      'adapters/billing/providerClient.ts',
      'adapters/blobs/s3BlobStore.ts',
      'adapters/outbound/safeFetch.ts',
      'bin/demo/demoLoad.ts',
      'bin/demo/demoRun.ts',
      'bin/service/inspect.ts',
      'bin/service/runningService.ts',
      'platform/embedded/temporalHealth.ts',
      'platform/embedded/temporalProgram.ts',
      'sdk/js/src/trueup.ts',
      'web/src/api/client.ts',
      // An example to copy.
      'web/src/screens/events/snippets.ts',
    ];
    const sends =
      /(?<![.\w#])fetch\(|\bglobalThis\.fetch\b|\bhttps?\.(?:request|get)\(|\{[^}]*\b(?:request|get)\b[^}]*\}\s*from\s*'(?:node:)?(?:https?|http2)'|from\s*'(?:undici|axios|got|node-fetch|node:http2)'|import\('@aws-sdk\/|\b(?:WebSocket|EventSource|XMLHttpRequest)\(/;
    const found = PRODUCT.filter(({ text }) => sends.test(text)).map((source) => source.path);
    expect(found.sort()).toEqual(senders);
    for (const text of [
      'await fetch(url)',
      "import { request } from 'node:https';",
      'http.get(url)',
      "from 'undici'",
      "await import('@aws-sdk/client-s3')",
    ])
      expect(sends.test(text), text).toBe(true);
  });

  it('define no getter in an object literal of the API: V8 keeps what it refers to until a full collection', () => {
    // The formatter ends a literal's getter with a comma, a class's without one.
    const getter = /^( *)get (\w+)\(\)[^{]*\{\n[\s\S]*?\n\1\}(,?)$/gm;
    const found = PRODUCT.filter(({ room }) => room === 'api').flatMap(({ path: file }) =>
      [...readFileSync(path.join(ROOT, file), 'utf8').matchAll(getter)]
        .filter(([, , , comma]) => comma === ',')
        .map(([, , name]) => `${file}: ${name}`),
    );
    expect(found).toEqual([]);
  });

  it('keep no asynchronous context: on Node 20 and 22 it slows every promise of the process down', () => {
    // Applications run the package in their own processes.
    const users = IMPORTS.filter(
      ({ file, specifier }) => /async_hooks$/.test(specifier) && !file.startsWith('sdk/'),
    );
    expect(users.map(({ file }) => file)).toEqual([]);
  });

  it('describe a resource of the API in endpoints.ts and wire.ts, and csv.ts where it answers CSV', () => {
    const resources = PRODUCT.filter((source) => /^api\/.*\/endpoints\.ts$/.test(source.path)).map((source) =>
      path.posix.dirname(source.path),
    );
    expect(resources.length).toBeGreaterThan(20);
    for (const folder of resources) {
      const names = readdirSync(path.join(ROOT, folder)).filter((name) => name.endsWith('.ts'));
      const parts = names.filter((name) => name !== 'csv.ts' && name !== 'examples.ts');
      expect(parts.sort(), folder).toEqual(['endpoints.ts', 'wire.ts']);
    }
  });

  it('keep each process in bin a composition root of under 60 lines, imports and comments aside', () => {
    const roots = PRODUCT.filter(({ path: file }) => /^bin\/[^/]+\.ts$/.test(file));
    expect(roots.length).toBeGreaterThan(1);
    for (const { path: file, text } of roots) {
      const code = text.replace(/^import[^;]*;$/gm, '');
      const lines = code.split('\n').filter((line) => !/^\s*($|\/\/|\/?\*)/.test(line));
      expect(lines.length, file).toBeLessThan(60);
    }
  });
});

describe('sizes', () => {
  it(`no file has more than ${FILE_LINES_MAX} lines, migrations aside`, () => {
    const long = SOURCES.filter(({ path: file, lines }) => !isMigration(file) && lines > FILE_LINES_MAX);
    expect(long.map((source) => source.path)).toEqual([]);
  });

  it(`the engine has at most ${ENGINE_FILES_MAX} files and ${ENGINE_LINES_MAX} lines`, () => {
    const files = PRODUCT.filter((source) => source.path.startsWith(ENGINE));
    expect(files.length).toBeLessThanOrEqual(ENGINE_FILES_MAX);
    expect(files.reduce((sum, source) => sum + source.lines, 0)).toBeLessThanOrEqual(ENGINE_LINES_MAX);
  });

  it('the engine decides by typed values: no file of it takes a name apart or compares one', () => {
    // Ids of models come from providers' bills, and their forms are a fact about these.
    const isOfModelId = (line: string) => /\b(pricedAs|use\.model)\b/.test(line);
    const readsName =
      /\.(startsWith|endsWith|split|match|matchAll|exec|test|replace|search)\(|new RegExp|\b(variant|name) [!=]== '/;
    const found = PRODUCT.filter((source) => source.path.startsWith(ENGINE)).flatMap(({ path: file }) =>
      readFileSync(path.join(ROOT, file), 'utf8')
        .split('\n')
        .filter((line) => readsName.test(line) && !isOfModelId(line))
        .map((line) => `${file}: ${line.trim()}`),
    );
    expect(found).toEqual([]);
  });

  it('the numbers of the engine are in its calibration', () => {
    // Without comments and texts; powers of ten are units, a half belongs to the normal distribution, slices to dates.
    const beside =
      /\/\*[\s\S]*?\*\/|\/\/.*|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|\*\* \d+n|\.slice\([\d, ]+\)/g;
    const number = /(?<![\w.$])\d[\d_]*(?:\.\d+)?(?:e-?\d+)?n?\b/g;
    const isUsual = (text: string) => /^(?:[012]n?|0\.5|1(?:_?0)+n?)$/.test(text);
    const found = PRODUCT.filter(
      (source) => source.path.startsWith(ENGINE) && source.path !== `${ENGINE}calibration.ts`,
    ).flatMap(({ path: file }) =>
      [...readFileSync(path.join(ROOT, file), 'utf8').replace(beside, '').matchAll(number)]
        .filter(([text]) => !isUsual(text))
        .map(([text]) => `${file}: ${text}`),
    );
    expect(found).toEqual([]);
  });

  it(`no folder of the product has more than ${FOLDER_FILES_MAX} files, migrations aside`, () => {
    const folders = new Map<string, number>();
    for (const { path: file } of PRODUCT) {
      if (isMigration(file)) continue;
      const folder = path.posix.dirname(file);
      folders.set(folder, (folders.get(folder) ?? 0) + 1);
    }
    expect([...folders].filter(([, files]) => files > FOLDER_FILES_MAX)).toEqual([]);
  });

  it(`no endpoint's handler has more than ${HANDLER_LINES_MAX} lines`, () => {
    const long = PRODUCT.filter((source) => /^api\/.*\/endpoints\.ts$/.test(source.path)).flatMap(
      longHandlers,
    );
    expect(long).toEqual([]);
  });
});

describe('the repository', () => {
  it('names no registry and no path of a developer machine', () => {
    const foreign = new RegExp(
      ['registry\\.npm' + 'js', 'proxy\\.golang\\.' + 'org', 'pypi\\.' + 'org', '/work' + '/shared'].join(
        '|',
      ),
    );
    const others = ['package.json', 'package-lock.json', 'README.md'].map((file) => ({
      path: file,
      text: readFileSync(path.join(ROOT, file), 'utf8'),
    }));
    const found = [...SOURCES, ...others].filter(({ text }) => foreign.test(text));
    expect(found.map((source) => source.path)).toEqual([]);
  });
});

/** `file: lines` of each handler in a file of endpoints that is longer than the limit. */
function longHandlers({ path: file, text }: SourceFile): string[] {
  const lines = text.split('\n');
  return lines.flatMap((line, at) => {
    const start = /^(\s*)(?:async )?handle(?:r)?\s*[:(]/.exec(line);
    if (!start) return [];
    // A handler on one line, or one that names a function, ends where the next line is not indented deeper.
    const isEnd = new RegExp(`^ {0,${start[1]?.length}}[^ )]`);
    const end = lines.findIndex((other, below) => below > at && isEnd.test(other));
    const length = end < 0 ? 1 : end - at - 1;
    return length > HANDLER_LINES_MAX ? [`${file}:${at + 1} has a handler of ${length} lines`] : [];
  });
}
