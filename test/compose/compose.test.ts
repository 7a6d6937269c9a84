import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseConfig } from '../../platform/config.js';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import { SETTING_NAMES } from '../../platform/settings.js';
import { NODE_FLAGS, type ServerName } from '../../platform/supervision.js';

const read = (path: string) => readFileSync(join(PROJECT_ROOT, path), 'utf8');

interface Service {
  image: string;
  environment?: Record<string, string | number>;
  healthcheck?: { test?: string[]; disable?: boolean };
  depends_on?: Record<string, { condition: string }>;
  volumes?: string[];
  ports?: string[];
  command?: string[];
  stop_grace_period?: string;
  restart?: string;
  networks?: string[];
}

const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  services: Record<string, Service>;
  volumes: Record<string, unknown>;
  networks: Record<string, unknown>;
};
const services = Object.entries(compose.services);
const ours = services.filter(([, { image }]) => image.startsWith('trueup:'));

function serviceOf(name: string): Service {
  const service = compose.services[name];
  if (!service) throw new Error(`no service ${name}`);
  return service;
}

/** The value after substitution: `${NAME:?…}` as given, `${NAME:-default}` its default. */
function fill(value: string | number, given: Record<string, string>): string {
  const filled = String(value).replace(
    // The innermost ones: a default may name another variable.
    /\$\{([A-Z0-9_]+):([-?])([^${}]*)\}/g,
    (_, name: string, kind: string, rest: string) => {
      return given[name] ?? (kind === '-' ? rest : '');
    },
  );
  return filled === value ? filled : fill(filled, given);
}

function environmentOf(name: string, given: Record<string, string> = {}): Record<string, string> {
  const entries = Object.entries(serviceOf(name).environment ?? {});
  return Object.fromEntries(
    entries.map(([key, value]) => [
      key,
      fill(value, { POSTGRES_PASSWORD: 'secret', APP_DB_PASSWORD: 'other', ...given }),
    ]),
  );
}

describe('docker-compose.yml', () => {
  it('brings Postgres, Temporal on it, the API and the worker', () => {
    expect(Object.keys(compose.services).toSorted()).toEqual(
      ['api', 'migrate', 'postgres', 'temporal', 'temporal-schema', 'worker'].toSorted(),
    );
    expect(serviceOf('temporal').environment).toMatchObject({ DB: 'postgres12', POSTGRES_SEEDS: 'postgres' });
  });

  it.each(services)('%s has an image of one exact version', (_name, { image }) => {
    expect(image).toMatch(/^[a-z/-]+:\d+\.\d+(\.\d+)?(-[a-z]+)?$/);
  });

  it('takes a Postgres of at least 16 and one version for Temporal’s server and its tools', () => {
    expect(Number(/^postgres:(\d+)/.exec(serviceOf('postgres').image)?.[1])).toBeGreaterThanOrEqual(16);
    expect(serviceOf('temporal').image.split(':')[1]).toBe(serviceOf('temporal-schema').image.split(':')[1]);
  });

  it.each(ours)('%s accepts each of its settings, also unset', (name) => {
    const environment = environmentOf(name);
    for (const key of Object.keys(environment)) expect(SETTING_NAMES).toContain(key);
    const config = parseConfig(environment);
    expect(config.databaseUrl).toBe('postgres://app_login:other@postgres:5432/trueup');
    const direct = name === 'api' ? config.databaseUrl : 'postgres://trueup:secret@postgres:5432/trueup';
    expect(config.databaseDirectUrl).toBe(direct);
    expect(config.temporalAddress).toBe('temporal:7233');
  });

  it('passes on each setting that .env can have, except for the containers’ own', () => {
    const inside = ['DATABASE_URL', 'DATABASE_DIRECT_URL', 'TEMPORAL_ADDRESS', 'TEMPORAL_CLI_PATH', 'HOST'];
    // Commands that use a running service run where their user works.
    const ofCommands = ['TRUEUP_URL', 'TRUEUP_API_KEY'];
    const own = [...inside, ...ofCommands, 'DATA_DIR', 'AUDIT_ANCHOR_DIR', 'DEMO'];
    const text = read('docker-compose.yml');
    expect(SETTING_NAMES.filter((name) => !text.includes(`\${${name}:`))).toEqual(
      SETTING_NAMES.filter((name) => own.includes(name)),
    );
  });

  it.each(ours)(
    '%s runs a program that there is, from the image of this version',
    (_name, { image, command }) => {
      const { version } = JSON.parse(read('package.json')) as { version: string };
      expect(image).toBe(`trueup:${version}`);
      const [runtime, ...rest] = command ?? [];
      if (runtime === 'trueup') return expect(rest).toEqual(['migrate']);
      const file = rest.at(-1);
      expect(runtime).toBe('node');
      // A server runs with the flags of npm start.
      expect(rest.slice(0, -1)).toEqual(NODE_FLAGS[basename(String(file), '.js') as ServerName]);
      expect(existsSync(join(PROJECT_ROOT, String(file).replace(/^dist\/(.*)\.js$/, '$1.ts')))).toBe(true);
    },
  );

  it('waits for health where something must be there first, and every server has a health check', () => {
    for (const [name, { depends_on = {} }] of services) {
      for (const [needed, { condition }] of Object.entries(depends_on)) {
        const { healthcheck, restart } = serviceOf(needed);
        if (condition === 'service_healthy')
          expect(healthcheck?.test, `${name} waits for ${needed}`).toBeDefined();
        else expect([condition, restart]).toEqual(['service_completed_successfully', 'on-failure:5']);
      }
    }
    for (const name of ['postgres', 'temporal', 'api'])
      expect(serviceOf(name).healthcheck?.test).toBeDefined();
  });

  it('opens the API alone, and on loopback alone', () => {
    const open = services.filter(([, { ports }]) => ports !== undefined).map(([name]) => name);
    expect(open).toEqual(['api']);
    for (const port of serviceOf('api').ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/);
  });

  it('allows processes longer to end than they take: 43 s at most', () => {
    for (const name of ['api', 'worker']) {
      expect(Number.parseInt(serviceOf(name).stop_grace_period ?? '0', 10)).toBeGreaterThanOrEqual(45);
    }
  });

  it('asks for each password, and holds none', () => {
    const text = read('docker-compose.yml');
    for (const name of ['POSTGRES_PASSWORD', 'APP_DB_PASSWORD', 'TEMPORAL_DB_PASSWORD'])
      expect(text).toContain(`\${${name}:?`);
    for (const [, { environment = {} }] of services) {
      for (const [key, value] of Object.entries(environment))
        if (/PASSWORD|PWD/.test(key)) expect(value).toMatch(/^\$\{/);
    }
  });

  it('mounts files that there are, scripts among them that can be run, and volumes that it declares', () => {
    for (const [, { volumes = [] }] of services) {
      for (const volume of volumes) {
        const [source = ''] = volume.split(':');
        if (!source.startsWith('./')) expect(Object.keys(compose.volumes)).toContain(source);
        else if (source.endsWith('.sh'))
          expect(statSync(join(PROJECT_ROOT, source)).mode & 0o111).not.toBe(0);
        else expect(existsSync(join(PROJECT_ROOT, source))).toBe(true);
      }
    }
  });

  it('keeps every service on the inner network', () => {
    for (const [, { networks }] of services) expect(networks).toEqual(['inner']);
  });
});

describe('Dockerfile', () => {
  const lines = read('Dockerfile')
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => /^[A-Z]+ /.test(line));
  const of = (word: string) =>
    lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1));
  const lastStage = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')));

  it('builds and runs on one exact version of Node that package.json allows', () => {
    const images = of('FROM').map((line) => line.split(' ')[0]);
    expect(new Set(images).size).toBe(1);
    const major = Number(/^node:(\d+)\.\d+\.\d+-/.exec(images[0] ?? '')?.[1]);
    expect(major).toBeGreaterThanOrEqual(22);
  });

  it('installs what the lockfile names, without install scripts', () => {
    expect(of('RUN').some((line) => /^npm ci --ignore-scripts\b/.test(line))).toBe(true);
  });

  it('runs as a user that is not root and has a health check', () => {
    expect(lastStage.filter((line) => line.startsWith('USER '))).toEqual(['USER node']);
    expect(of('HEALTHCHECK')).toHaveLength(1);
  });

  it('sets nothing that the settings do not know', () => {
    const names = of('ENV').flatMap((line) => [...line.matchAll(/([A-Z_]+)=/g)].map(([, name]) => name));
    expect(names.filter((name) => name !== 'NODE_ENV')).toEqual(['HOST', 'PORT', 'DATA_DIR']);
    for (const name of names) if (name !== 'NODE_ENV') expect(SETTING_NAMES).toContain(name);
  });

  it('copies what there is, and starts a program that there is', () => {
    for (const line of of('COPY').filter((copy) => !copy.startsWith('--from'))) {
      for (const source of line.split(' ').slice(0, -1))
        expect(existsSync(join(PROJECT_ROOT, source))).toBe(true);
    }
    expect(lastStage.at(-1)).toBe(
      `CMD ${JSON.stringify(['node', ...NODE_FLAGS.api, 'dist/bin/api.js']).replaceAll(',', ', ')}`,
    );
    expect(existsSync(join(PROJECT_ROOT, 'bin/api.ts'))).toBe(true);
  });

  it('has the command line on its path', () => {
    expect(lastStage).toContain('COPY --from=build /app/trueup ./trueup');
    expect(of('RUN').some((line) => line.startsWith('ln -s /app/trueup /usr/local/bin/trueup'))).toBe(true);
    expect(statSync(join(PROJECT_ROOT, 'trueup')).mode & 0o111).toBe(0o111);
  });
});
