import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { DomainError } from '../../domain/errors.js';
import { processEnvironment } from '../../platform/config.js';
import { readStat } from '../../platform/embedded/processTable.js';

/** Resource limits of one child. */
export interface ChildLimits {
  /** Writable memory, by prlimit. An address-space limit would break WebAssembly, which reserves far more than it uses. */
  dataMegabytesMax: number;
  /** JavaScript heap. */
  heapMegabytesMax: number;
  cpuSecondsMax: number;
  /** Longest time without a message and without CPU time: a busy machine may stop a child of the lowest priority. */
  silenceMsMax: number;
  /** Whether to use prlimit where the system has it. */
  usePrlimit: boolean;
}

export const CHILD_LIMITS: ChildLimits = {
  dataMegabytesMax: 512,
  heapMegabytesMax: 256,
  cpuSecondsMax: 20,
  silenceMsMax: 90_000,
  usePrlimit: true,
};

/** Without prlimit: resident memory, and the longest time without a message, which also bounds CPU time. */
const UNLIMITED_RSS_MEGABYTES_MAX = 600;
const UNLIMITED_SILENCE_MS_MAX = 30_000;
const WATCH_MS = 100;
const LOWEST_NICE = 19;
const AUTOGROUP_PAUSE_MS = 150;
const STDERR_CHARACTERS_MAX = 2_000;

/** First message of a child: the document causes every later failure. */
export interface ReadyMessage {
  is: 'ready';
}

export interface ChildRun<M> {
  signal?: AbortSignal | undefined;
  /** Returns true when the message is the last one. A throw ends the child and rejects. */
  onMessage: (message: M) => boolean;
}

/** A process of its own that runs one module on one job, under limits. It ends with this process. */
export interface LimitedChild<J, M> {
  readonly hasEnded: boolean;
  /** Once. Error resource_limit. */
  run(job: J, options: ChildRun<M>): Promise<void>;
  /** Ends it and what it has started. */
  end(): void;
}

/** Starts a module at the lowest priority, without settings or secrets. It loads what it needs and waits for its job. */
export function startLimited<J extends object, M extends { is: string }>(
  program: string,
  given: Partial<ChildLimits> = {},
): LimitedChild<J, M> {
  const limits = { ...CHILD_LIMITS, ...given };
  const { command, isLimited } = limitedCommand(program, limits);
  const [file = '', ...args] = command;
  // The child leads a process group, so that its own children end with it.
  const child = spawn(file, args, {
    detached: true,
    env: { PATH: searchPath(), ...FRUGAL_ALLOCATION },
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  lowerSession(child);
  const watch = isLimited
    ? undefined
    : watchMemory(child, UNLIMITED_RSS_MEGABYTES_MAX, () => endGroup(child));
  let isReady = false;
  let hasEnded = false;
  let stderr = '';
  let failure: unknown;
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString('utf8')).slice(-STDERR_CHARACTERS_MAX);
  });
  child.on('message', ({ is }: M | ReadyMessage) => {
    if (is === 'ready') isReady = true;
  });
  child.once('error', (error) => {
    failure ??= error;
  });
  const closed = new Promise<string>((resolve) => {
    child.once('close', (code, killedBy) => {
      hasEnded = true;
      clearInterval(watch);
      resolve(String(killedBy ?? code));
    });
  });
  // A child without a job does not keep this process alive.
  const holds = (isHeld: boolean) => {
    const change = isHeld ? 'ref' : 'unref';
    child[change]();
    child.channel?.[change]();
    (child.stderr as Socket | null)?.[change]();
    watch?.[change]();
  };
  holds(false);
  return {
    get hasEnded() {
      return hasEnded;
    },
    end: () => endGroup(child),
    async run(job, { signal, onMessage }) {
      let isDone = false;
      const end = (error?: unknown) => {
        failure ??= error;
        endGroup(child);
      };
      holds(true);
      let cpuTicks = groupCpuTicks(child.pid);
      const onSilence = () => {
        // Without a limit of CPU time the silence is that limit.
        if (!isLimited) return end();
        const before = cpuTicks;
        cpuTicks = groupCpuTicks(child.pid);
        if (cpuTicks > before) silence.refresh();
        else end(noCpuTime());
      };
      const silence = setTimeout(
        onSilence,
        isLimited ? limits.silenceMsMax : Math.min(limits.silenceMsMax, UNLIMITED_SILENCE_MS_MAX),
      );
      const onAbort = () => end(signal?.reason);
      signal?.addEventListener('abort', onAbort, { once: true });
      if (signal?.aborted) onAbort();
      child.on('message', (message: M | ReadyMessage) => {
        silence.refresh();
        if (message.is === 'ready' || failure !== undefined || isDone) return;
        try {
          isDone = onMessage(message as M);
        } catch (error) {
          end(error);
        }
      });
      child.send(job, (error) => {
        if (error) endGroup(child);
      });
      const how = await closed;
      clearTimeout(silence);
      signal?.removeEventListener('abort', onAbort);
      if (failure !== undefined) throw failure;
      if (isDone) return;
      if (isReady) throw resourceLimit();
      throw new Error(`${program} did not start (${how}): ${stderr.trim()}`);
    },
  };
}

export const resourceLimit = () =>
  new DomainError(
    'resource_limit',
    'the PDF needs more memory or time than an invoice may: print it to a new PDF and upload that one',
  );

/** No fault of the document: another attempt may succeed. */
const noCpuTime = () =>
  new DomainError('service_unavailable', 'the machine is too busy to read the file: try again later', {
    retryAfterSeconds: 30,
  });

/**
 * Linux may share processors among sessions (autogroup). A session's own nice then counts, and that of its processes
 * only within it. The child leads a session.
 */
function lowerSession(child: ChildProcess, attempts = 5): void {
  if (process.platform !== 'linux' || child.pid === undefined || child.exitCode !== null) return;
  try {
    writeFileSync(`/proc/${child.pid}/autogroup`, String(LOWEST_NICE));
  } catch (error) {
    // The kernel accepts one change in 100 ms from users other than root. Other errors: it has no autogroups, or the
    // child has ended.
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN' && attempts > 1)
      setTimeout(() => lowerSession(child, attempts - 1), AUTOGROUP_PAUSE_MS).unref();
  }
}

/** Ends the child and its own children. */
function endGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    child.kill('SIGKILL');
  }
}

/** glibc returns a freed picture to the system at once, which keeps 100 MB from two engines' peak. Others ignore it. */
const FRUGAL_ALLOCATION = { MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: '262144' };

/** Without a build the sources themselves run. */
const IS_BUILT = !import.meta.url.endsWith('.ts');

function limitedCommand(program: string, limits: ChildLimits): { command: string[]; isLimited: boolean } {
  const prlimit = [
    'prlimit',
    `--data=${limits.dataMegabytesMax * 1_048_576}`,
    `--cpu=${limits.cpuSecondsMax}`,
  ];
  const isLimited = limits.usePrlimit && works(prlimit);
  // A busy child does not notice the end of this process by itself.
  const leash = ['setpriv', '--no-new-privs', '--pdeathsig=KILL'];
  const lowest = ['nice', '-n', String(LOWEST_NICE)];
  return {
    isLimited,
    command: [
      ...(works(leash) ? leash : []),
      ...(isLimited ? prlimit : []),
      ...(works(lowest) ? lowest : []),
      process.execPath,
      `--max-old-space-size=${limits.heapMegabytesMax}`,
      '--expose-gc',
      ...(IS_BUILT ? [] : ['--import', import.meta.resolve('tsx'), '--import', UNCHANGED_PDFJS]),
      program,
    ],
  };
}

/** Prevents tsx from transpiling pdf.js, which is JavaScript and takes a second. */
const UNCHANGED_PDFJS = moduleAddress(`
  import { register } from 'node:module';
  register(${JSON.stringify(
    moduleAddress(`
      import { readFile } from 'node:fs/promises';
      export async function load(url, context, next) {
        if (!url.includes('/pdfjs-dist/')) return next(url, context);
        return { format: 'module', source: await readFile(new URL(url)), shortCircuit: true };
      }`),
  )});`);

function moduleAddress(source: string): string {
  return `data:text/javascript,${encodeURIComponent(source)}`;
}

const found = new Map<string, boolean>();

/** Whether the system has this command with these options. */
function works(command: readonly string[]): boolean {
  const [program = '', ...args] = command;
  let is = found.get(program);
  if (is === undefined) {
    is = spawnSync(program, [...args, 'true'], { stdio: 'ignore' }).status === 0;
    found.set(program, is);
  }
  return is;
}

let path: string | undefined;

function searchPath(): string {
  path ??= processEnvironment().PATH ?? '';
  return path;
}

/** Calls `exceeded` when the process is seen to have more resident memory. */
function watchMemory(child: ChildProcess, megabytesMax: number, exceeded: () => void): NodeJS.Timeout {
  const check = (kilobytes: number) => {
    if (kilobytes / 1024 > megabytesMax) exceeded();
  };
  return setInterval(() => {
    if (child.pid === undefined) return;
    if (process.platform === 'linux') check(procRssKilobytes(child.pid));
    else execFile('ps', ['-o', 'rss=', '-p', String(child.pid)], (_error, out) => check(Number(out)));
  }, WATCH_MS);
}

/** CPU time of a process group in clock ticks, 10 ms each; 0 where there is no /proc. */
function groupCpuTicks(group: number | undefined): number {
  if (process.platform !== 'linux' || group === undefined) return 0;
  let ticks = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    // State, parent, group, session, …, user and system time in fields 12 and 13.
    const fields = readStat(Number(pid));
    if (fields && Number(fields[2]) === group) ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks;
}

function procRssKilobytes(pid: number): number {
  try {
    return Number(/^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
