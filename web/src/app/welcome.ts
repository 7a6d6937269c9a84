const WELCOME = /^#\/welcome\/(.+)$/;

/** The token of a one-time link's fragment; undefined: the fragment is something else. */
export const welcomeToken = (hash: string): string | undefined => WELCOME.exec(hash)?.[1];
