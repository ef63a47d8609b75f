/* A small stand-in for a container plugin of Slurm: gives a step the file system of an image, built on the fly by the
 * end to end test.
 *
 * An image is a folder, or a file whose first line names one. Each top-level folder of the host is seen through an
 * overlay, with the image's own on top, and what is written there goes with the step; /tmp is empty; the mounts that
 * were asked for are the real ones. Steps without an image stay on the host.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <slurm/spank.h>

SPANK_PLUGIN(container, 1)

#define ROOT "/mnt"

static char image[PATH_MAX], mounts[65536], workdir[PATH_MAX];

static int keep(int which, const char *value, int remote)
{
    (void)remote;
    if (which == 1)
        snprintf(image, sizeof image, "%s", value);
    else if (which == 2)
        snprintf(mounts, sizeof mounts, "%s", value);
    else if (which == 3)
        snprintf(workdir, sizeof workdir, "%s", value);
    return 0;
}

static struct spank_option options[] = {
    {"container-image", "IMAGE", "image of the step", 1, 1, keep},
    {"container-mounts", "SRC:DST,...", "paths of the host", 1, 2, keep},
    {"container-workdir", "PATH", "folder to start in", 1, 3, keep},
    {"container-mount-home", NULL, "taken", 0, 0, keep},
    {"no-container-mount-home", NULL, "taken", 0, 0, keep},
    {"container-remap-root", NULL, "taken", 0, 0, keep},
    {"no-container-remap-root", NULL, "taken", 0, 0, keep},
    {"container-entrypoint", NULL, "taken", 0, 0, keep},
    {"no-container-entrypoint", NULL, "taken", 0, 0, keep},
    {"container-writable", NULL, "taken", 0, 0, keep},
    {"container-readonly", NULL, "taken", 0, 0, keep},
    SPANK_OPTIONS_TABLE_END,
};

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (struct spank_option *option = options; option->name; option++)
        if (spank_option_register(spank, option) != ESPANK_SUCCESS)
            return -1;
    return 0;
}

static int fail(const char *what, const char *path)
{
    slurm_error("container: %s %s: %s", what, path, strerror(errno));
    return -1;
}

static void make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0755);
        *slash = '/';
    }
}

static int bind_path(const char *source, const char *inside)
{
    char target[PATH_MAX];
    struct stat state;
    snprintf(target, sizeof target, ROOT "%s", inside);
    if (stat(source, &state))
        return fail("mount source", source);
    make_parents(target);
    if (S_ISDIR(state.st_mode)) {
        mkdir(target, 0755);
    } else {
        int file = open(target, O_CREAT | O_WRONLY, 0644);
        if (file >= 0)
            close(file);
    }
    if (mount(source, target, NULL, MS_BIND | MS_REC, NULL))
        return fail("mount", inside);
    return 0;
}

/* One top-level name of host and image. */
static int show(const char *folder, const char *name)
{
    char host[PATH_MAX], own[PATH_MAX], target[PATH_MAX], upper[PATH_MAX], work[PATH_MAX], data[5 * PATH_MAX];
    struct stat state;
    snprintf(host, sizeof host, "/%s", name);
    snprintf(own, sizeof own, "%s/%s", folder, name);
    snprintf(target, sizeof target, ROOT "/%s", name);
    if (!lstat(target, &state))
        return 0;
    if (!strcmp(name, "proc") || !strcmp(name, "sys") || !strcmp(name, "dev") || !strcmp(name, "run"))
        return bind_path(host, host);
    if (!strcmp(name, "tmp") || !strcmp(name, "mnt"))
        return mkdir(target, 01777) ? fail("make", target) : 0;
    int on_host = !lstat(host, &state);
    if (on_host && S_ISLNK(state.st_mode)) {
        char link[PATH_MAX] = "";
        if (readlink(host, link, sizeof link - 1) < 0 || symlink(link, target))
            return fail("link", target);
        return 0;
    }
    if (on_host && !S_ISDIR(state.st_mode))
        return 0;
    int in_image = !access(own, F_OK);
    snprintf(upper, sizeof upper, ROOT "/.upper/%s", name);
    snprintf(work, sizeof work, ROOT "/.work/%s", name);
    make_parents(upper);
    make_parents(work);
    mkdir(upper, 0755);
    mkdir(work, 0755);
    mkdir(target, 0755);
    snprintf(data, sizeof data, "lowerdir=%s%s%s,upperdir=%s,workdir=%s", in_image ? own : "",
             in_image && on_host ? ":" : "", on_host ? host : "", upper, work);
    if (mount("overlay", target, "overlay", 0, data))
        return fail("overlay", data);
    return 0;
}

static int show_all(const char *folder, const char *list)
{
    DIR *open_folder = opendir(list);
    int status = 0;
    if (!open_folder)
        return fail("open", list);
    for (struct dirent *entry; !status && (entry = readdir(open_folder));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            status = show(folder, entry->d_name);
    closedir(open_folder);
    return status;
}

static int find_image(char *folder, size_t size)
{
    struct stat state;
    if (stat(image, &state))
        return fail("image", image);
    snprintf(folder, size, "%s", image);
    if (!S_ISDIR(state.st_mode)) {
        FILE *file = fopen(image, "r");
        if (!file || !fgets(folder, (int)size, file))
            return fail("image", image);
        fclose(file);
        folder[strcspn(folder, "\n")] = 0;
    }
    return 0;
}

int slurm_spank_task_init_privileged(spank_t spank, int argc, char **argv)
{
    char folder[PATH_MAX];
    (void)argc;
    (void)argv;
    if (!image[0])
        return 0;
    if (find_image(folder, sizeof folder))
        return -1;
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return fail("namespace for", image);
    if (mount("tmpfs", ROOT, "tmpfs", 0, NULL))
        return fail("mount", ROOT);
    if (show_all(folder, "/") || show_all(folder, folder) || bind_path("/etc/hosts", "/etc/hosts"))
        return -1;
    for (char *next = mounts, *one; (one = strsep(&next, ","));) {
        char *inside = strchr(one, ':');
        if (!inside)
            continue;
        *inside++ = 0;
        inside[strcspn(inside, ":")] = 0;
        if (bind_path(one, inside))
            return -1;
    }
    if (chroot(ROOT) || chdir("/"))
        return fail("enter", ROOT);
    /* The job's environment is the host's, with srtctl's own Python first. */
    spank_setenv(spank, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
    spank_unsetenv(spank, "VIRTUAL_ENV");
    spank_unsetenv(spank, "PYTHONPATH");
    spank_unsetenv(spank, "PYTHONHOME");
    return 0;
}

int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
    (void)spank;
    (void)argc;
    (void)argv;
    /* Slurm changes into the submit folder after the privileged hook. */
    if (image[0] && chdir(workdir[0] ? workdir : "/"))
        return fail("workdir", workdir);
    return 0;
}
