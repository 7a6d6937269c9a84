export const DEMO_RUN_STATUSES = ['queued', 'running', 'succeeded', 'failed'] as const;
export type DemoRunStatus = (typeof DEMO_RUN_STATUSES)[number];

/** Seconds between two signs of life of the program that loads the demo, and those after which it counts as dead. */
export const DEMO_RUN_ALIVE_SECONDS = 10;
export const DEMO_RUN_LOST_SECONDS = 60;
/** Characters of a stored stage and message. */
export const DEMO_STAGE_CHARS_MAX = 256;
export const DEMO_MESSAGE_CHARS_MAX = 1_024;
