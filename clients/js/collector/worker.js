/** Stores the take-part page and what it loads, for use without a network. Requests go to the service first; the copy is used if that fails. */
const CACHE = "discreet take-part";
const CACHED_PATHS = /\/(take-part|collection|agreement|weights|questions|pages\/[\w.-]+)$/; // estimates and sent samples are not stored
const isCached = (address) => new URL(address).origin === location.origin && CACHED_PATHS.test(new URL(address).pathname);

async function fetchAndCache(request) {
  const answer = await fetch(request);
  if (answer.ok) await (await caches.open(CACHE)).put(request.url ?? request, answer.clone());
  return answer;
}

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("message", (event) =>
  event.waitUntil(Promise.all([...new Set(event.data.addresses)].filter(isCached).map(fetchAndCache)).finally(() => event.ports[0].postMessage(true))),
);
addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !isCached(request.url)) return;
  event.respondWith(
    fetchAndCache(request).catch(async (error) => {
      const kept = await caches.match(request.url, { ignoreVary: true });
      if (kept) return kept;
      throw error;
    }),
  );
});
